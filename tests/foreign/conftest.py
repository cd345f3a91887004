"""One daemon and one strict fake for all tests of a module: each test has sessions and a folder of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from fake_api import FakeApi
from support import Editor, RunningDaemon, configure, open_socket, start_daemon


@pytest.fixture(scope="module")
def module_api() -> Generator[FakeApi]:
    with FakeApi() as api:
        yield api


@pytest.fixture(scope="module")
def module_daemon(tmp_path_factory: pytest.TempPathFactory, module_api: FakeApi) -> Generator[RunningDaemon]:
    place = tmp_path_factory.mktemp("long") / "home"
    place.mkdir(mode=0o700)
    configure(place, model={"base_url": module_api.url})
    running = start_daemon(place, {"ANTHROPIC_API_KEY": module_api.key})
    yield running
    running.end()


@pytest.fixture
async def desk(module_daemon: RunningDaemon, workspace: Path) -> AsyncGenerator[Editor]:
    """An editor with this test's workspace open."""
    async with open_socket(module_daemon.home, [workspace]) as opened:
        yield opened
