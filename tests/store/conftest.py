"""A store of the test's own, a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from histories import SteppingClock

from standfast.store.sqlite import SqliteStore


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store lies; nothing is there yet."""
    return tmp_path / "state" / "standfast.db"


@pytest.fixture
async def store(path: Path, clock: SteppingClock) -> AsyncGenerator[SqliteStore]:
    opened = await SqliteStore.open(path, clock)
    yield opened
    await opened.close()
