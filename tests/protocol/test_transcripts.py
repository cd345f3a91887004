"""The conformance transcripts, played against a daemon; and against daemons that say something else, which must be noticed."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from protocol.player import FILES, Mismatch, Partner, Player, Recorded, fields_of, renamed, shown, steps_of, swapped
from standfast.places import find_places
from support import RunningDaemon, configure, start_daemon
from wire.raw import Json, Raw, connect_to


class Stage:
    """`async with Stage(tmp_path) as stage`: a daemon of its own process, which can die, and the client's connection."""

    def __init__(self, tmp_path: Path) -> None:
        self._home = tmp_path / "home"
        self._running: RunningDaemon
        self._raw: Raw
        self._stack = contextlib.AsyncExitStack()
        self.said: list[list[Json]] = []
        """What the daemon said, one list a connection."""

    async def __aenter__(self) -> Stage:
        self._home.mkdir(mode=0o700)
        configure(self._home, model={"provider": "scripted"})
        await self._open()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()
        self._running.kill()

    async def _open(self) -> None:
        self._running = start_daemon(self._home)
        self._raw = await self._stack.enter_async_context(
            connect_to(find_places({"STANDFAST_HOME": str(self._home)}).socket)
        )
        self.said.append(self._raw.heard)

    def send(self, message: Json) -> None:
        self._raw.send(message)

    async def next(self) -> Json | None:
        return await self._raw.next()

    async def crash(self) -> None:
        self._running.kill()
        await self._stack.aclose()
        await self._open()

    async def rest(self) -> list[Json]:
        return await self._raw.rest()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
async def test_the_daemon_plays_its_part_and_any_other_daemon_is_found_out(path: Path, tmp_path: Path) -> None:
    """A mutant renames one field that the transcript names, or swaps two messages that it tells apart."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    known = {"workspace": folder.as_uri()}
    steps = steps_of(path)
    async with Stage(tmp_path) as stage:
        player = Player(stage, dict(known))
        await player.play(steps)
        assert steps[-1]["client"]["method"] == "exit"
        await stage.rest()
    await Player(Recorded(stage.said), dict(known)).play(steps)
    mutants = 0
    for number, message in player.matched.items():
        for field in fields_of(steps[number - 1]["daemon"]):
            mutants += 1
            place = re.escape(f"step {number}: {shown(field)}: is not there")
            await found_out(Recorded(renamed(stage.said, message, field)), known, steps, place)
    events = [(n, m) for n, m in player.matched.items() if m.get("method") == "standfast/event"]
    for (number, first), (_, second) in itertools.pairwise(events):
        if same_connection(stage.said, first, second):
            mutants += 1
            place = rf"step {number}: \$\.params\.event\.\w+: "
            await found_out(Recorded(swapped(stage.said, first, second)), known, steps, place)
    assert mutants > 3


def same_connection(said: list[list[Json]], *messages: Json) -> bool:
    return any(all(any(one is message for one in heard) for message in messages) for heard in said)


async def found_out(partner: Partner, known: dict[str, Any], steps: list[Json], place: str) -> None:
    with pytest.raises(Mismatch, match=place):
        await Player(partner, dict(known)).play(steps)
