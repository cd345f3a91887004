"""The way in: `standfast …`. Chooses what to load, so that `standfast lsp` loads next to nothing.

Owns no logic. It is the only module that may import both `cli` and `daemon`: the command line gets the daemon's door
handed in (`cli.door.Door`) and never imports the daemon itself.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code (README "Exit codes")."""
    # before anything is made: all of it is the user's own (ATK-08, e14)
    os.environ.setdefault("STANDFAST_UMASK", f"{os.umask(0o077):03o}")
    words = sys.argv[1:] if argv is None else argv
    match words[:2]:
        case ["lsp"]:
            from standfast.daemon.lsp_proxy import main as lsp

            return lsp()
        case ["daemon", "run"]:
            from standfast.daemon.serve import main as serve

            return serve(words[2:])
        case ["apply-patch", *_]:
            from standfast.cli.apply_patch import main as apply_patch

            return apply_patch(words[1:])
        case _:
            from standfast.cli.app import main as command_line
            from standfast.daemon.spawn import Spawner

            return command_line(words, Spawner.of(os.environ))


if __name__ == "__main__":
    sys.exit(main())
