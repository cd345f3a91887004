"""The long tier of tests/many: about two minutes of 100 clients on 20 sessions. `pytest tests/full/test_many_long.py`"""

from __future__ import annotations

from pathlib import Path

import pytest

from many.crowd import crowd
from support import configure, start_daemon
from support.daemon import places


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
async def test_a_hundred_clients_that_come_and_go_for_long(home: Path, workspace: Path, seed: int) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home)
    await crowd(places(home).socket, workspace, clients=100, sessions=20, runs=24, seed=seed)
    assert daemon.end() == 0
