"""What tests stand on: a real daemon in a home of its own, and an editor that speaks with it over the wire.

async with open_editor(home) as editor:                 # `standfast lsp` as a subprocess; starts the daemon
    session = await editor.create(workspace, mode="auto")
    run = await editor.start(session, "fix it")
    await editor.run_end(run)
"""

from support.daemon import RunningDaemon, configure, end_daemon, environment, start_daemon
from support.editor import Editor, open_editor, open_socket

__all__ = [
    "Editor",
    "RunningDaemon",
    "configure",
    "end_daemon",
    "environment",
    "open_editor",
    "open_socket",
    "start_daemon",
]
