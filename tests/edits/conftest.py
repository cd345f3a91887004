"""One daemon for each module here; a scene for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from edits.scene import Model, Scene, Stage
from fake_api import FakeApi
from support import configure, start_daemon


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """A daemon whose model answers each session as its test wrote it down."""
    place = tmp_path_factory.mktemp("edits") / "home"
    place.mkdir(mode=0o700)
    model = Model()
    with FakeApi(model.answer) as api:
        configure(place, model={"base_url": api.url})
        daemon = start_daemon(place, {"ANTHROPIC_API_KEY": api.key})
        yield Stage(daemon, model, api)
        assert daemon.end() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
async def scene(stage: Stage, folder: Path) -> AsyncGenerator[Scene]:
    """A session in `auto` mode, and an editor that takes edits."""
    async with stage.scene(folder) as found:
        yield found
