from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from standfast.daemon.compose import Daemon
from wire.raw import Raw, connect, house


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncGenerator[Daemon]:
    async with house(tmp_path / "home") as daemon:
        yield daemon


@pytest.fixture
async def raw(parts: Daemon) -> AsyncGenerator[Raw]:
    """A connection on which nothing was said yet."""
    async with connect(parts) as client:
        yield client
