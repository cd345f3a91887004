"""Plays one conformance transcript with the extension in the client's place. Run by `host/transcripts.test.cjs`, which holds it.

    python -m editors.vscode.transcript NAME FOLDER     in tests/; FOLDER is empty and stays the caller's

What the person does is said on stdout, a line each: `{"path": PROGRAM}` (connect through this program),
`{"ask": METHOD, "params": …}`, `{"answer": ANSWER}`, `{"close": true}`. Ends with 0 if all was said as it is written.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from editors.through import Through
from protocol.player import TRANSCRIPTS, Player, steps_of
from standfast.daemon import lock
from support import configure, end_daemon
from support.daemon import places
from wire.raw import Json

TAP = Path(__file__).parents[1] / "tap.py"


@dataclass
class Person:
    """Tells the extension's side what to do."""

    def ask(self, method: str, params: Json) -> None:
        say({"ask": method, "params": params})

    def answer(self, answer: Json) -> None:
        say({"answer": answer})

    def close(self) -> None:
        say({"close": True})


def say(words: Json) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201


def program(folder: Path, home: Path, socket: Path) -> Path:
    """In place of `standfast`: the same with a tap, and a home of its own."""
    script = folder / "standfast-with-tap"
    words = shlex.join([sys.executable, str(TAP), str(socket)])
    script.write_text(f"#!/bin/sh\nexport STANDFAST_HOME={shlex.quote(str(home))}\nexec {words}\n")
    script.chmod(0o755)
    return script


async def play(name: str, folder: Path) -> None:
    """Raises Mismatch for what the daemon, AssertionError for what the extension did not say."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    configure(home, model={"provider": "scripted"})
    workspace = folder / "workspace"
    workspace.mkdir()

    def kill(signal_number: int) -> None:
        pid = lock.signature(places(home).lock)["pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal_number)

    socket = folder / "tap"
    through = Through(Person(), kill)
    try:
        async with await through.listen(socket):
            say({"path": str(program(folder, home, socket))})
            await Player(through, {"workspace": workspace.as_uri()}).play(steps_of(TRANSCRIPTS / f"{name}.jsonl"))
            await through.rest()
    finally:
        end_daemon(home)


if __name__ == "__main__":
    asyncio.run(play(sys.argv[1], Path(sys.argv[2])))
