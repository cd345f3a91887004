"""A command of the agent cannot talk to the daemon, whatever it runs under: it could answer its own permission (ATK-05, issue G.4)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fake_api import FakeApi, reply, tool
from standfast.process import sandbox
from support import configure, open_editor, start_daemon
from support.daemon import places

KNOCK = """\
import os, socket, sys
try:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(sys.argv[1])
        sock.sendall(b'Content-Length: 2\\r\\n\\r\\n{}')
        said = sock.recv(100)
except OSError as error:
    said = type(error).__name__.encode()
print(sys.argv[2], said, flush=True)
if sys.argv[2] == 'directly':
    over, end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.set_inheritable(end, True)
            os.execve(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], 'aside'], {})
        os._exit(0)
    os.close(end)
    os.read(over, 1)
"""
"""Knock, and once more as a process that forked itself away, in a session of its own, without our environment."""


@pytest.mark.scenario("ATK-05")
@pytest.mark.scenario("ATK-01")
@pytest.mark.parametrize("level", sandbox.LEVELS)
async def test_a_command_that_knocks_at_the_daemons_socket_is_not_let_in(
    home: Path, workspace: Path, fake_api: FakeApi, level: sandbox.Level
) -> None:
    if sandbox.detect(sandbox.expose("/nonexistent", own=[]), best=level).level != level:
        pytest.skip(f"this machine cannot do {level}")
    configure(
        home,
        model={"base_url": fake_api.url},
        sandbox={"level": "none", "at_most": level, "read": [sys.prefix, sys.base_prefix]},
    )
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    (workspace / "knock.py").write_text(KNOCK)
    command = f"{sys.executable} knock.py {places(home).socket} directly"
    try:
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="auto")
            fake_api.push(reply("", tools=[tool("run_command", command=command)]), reply("Done."))
            await editor.run_end(await editor.start(session_id, "go"))
            said = editor.events(session_id, "tool_result")[0]["content"]
            refused = (
                "b''",
                "b'ConnectionResetError'",
                "b'BrokenPipeError'",
                "b'PermissionError'",
                "b'FileNotFoundError'",
            )
            answers = [line.split(" ", 1) for line in said.splitlines() if line.startswith(("directly ", "aside "))]
            assert [where for where, _ in answers] == ["directly", "aside"], said
            assert all(answer in refused for _, answer in answers), said
            assert (await editor.request("standfast/daemon/status", {}))["clients"] == 0
        if level == "none":
            assert places(home).log.read_text().count("is a process of a command that the agent runs") == 2
    finally:
        running.end()
