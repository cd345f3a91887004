"""What all tests share: the folder `tests/` on the path (`fake_api`, `support`), and a home, a workspace, a daemon, an editor."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background: else no child of a test could be interrupted
    signal.signal(signal.SIGINT, signal.default_int_handler)

from fake_api import FakeApi
from support import Editor, RunningDaemon, configure, end_daemon, environment, open_editor, start_daemon


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    """A STANDFAST_HOME of the test's own; whatever daemon serves it is ended afterwards."""
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    configure(place)
    yield place
    end_daemon(place)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A git project with one committed file, `a.py`."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True, env=environment(tmp_path))
    return folder


@pytest.fixture
def fake_api() -> Generator[FakeApi]:
    """A strict fake of the Messages API; push replies to it."""
    with FakeApi() as api:
        yield api


@pytest.fixture
def daemon(home: Path, fake_api: FakeApi) -> Generator[RunningDaemon]:
    """A running daemon whose model is the fake API."""
    configure(home, model={"base_url": fake_api.url})
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    yield running
    if running.process.poll() is None:
        running.end()


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningDaemon]:
    """One daemon for the tests of a module that neither end nor change it; its model cannot be reached."""
    place = tmp_path_factory.mktemp("shared") / "home"
    place.mkdir(mode=0o700)
    configure(place, model={"base_url": "http://127.0.0.1:9"})
    running = start_daemon(place)
    yield running
    running.end()


@pytest.fixture
async def editor(daemon: RunningDaemon, workspace: Path) -> AsyncGenerator[Editor]:
    """An editor with the workspace open, over `standfast lsp`."""
    async with open_editor(daemon.home, [workspace]) as opened:
        yield opened
