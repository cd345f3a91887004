"""Workspaces whose commands are confined by a level that this machine can do."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from process.place import Place, processes_with
from standfast.process import sandbox
from standfast.process.launch import Commands
from support.waiting import until


def confined_place(
    base: Path,
    level: sandbox.Level,
    *,
    grace_ms: int = 30_000,
    path: str | None = None,
    read: Sequence[str] = (sys.prefix, sys.base_prefix),
) -> Place:
    """A place like those of tests/process, with a home of its own. Skips where the machine cannot do the level. `path`: the person's
    PATH, if another than the test's; `read`: what their settings add.
    """
    home, state = base / "home", base / "state"
    home.mkdir(exist_ok=True)
    state.mkdir(exist_ok=True)
    environ = {"PATH": path or os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    exposure = sandbox.expose(str(home), own=[str(state)], path=environ["PATH"], read=read)
    found = sandbox.detect(exposure, best=level)
    if found.level != level:
        pytest.skip(f"this machine cannot do {level}: {found.why}")
    return Place(base, Commands(grace_ms=grace_ms, environ=environ, sandbox=found))


@pytest.fixture(params=["partial", "full"])
def level(request: pytest.FixtureRequest) -> Iterator[sandbox.Level]:
    yield request.param


@pytest.fixture
async def confined(tmp_path: Path) -> AsyncIterator[Place]:
    """At level full; afterwards nothing of it may be left."""
    place = confined_place(tmp_path, "full")
    yield place
    place.commands.close()
    await until(lambda: not processes_with(place.mark), "all processes of the test to be gone")
    assert [path.name for path in place.workspace.iterdir() if path.name in (".vscode", ".claude")] == []
