"""Real workspaces, real supervisors; at the end of each test no process of it may be left (I9)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from process.place import RUN, Place, processes_with
from standfast.process.launch import Commands
from support.waiting import until


@pytest.fixture(autouse=True)
def no_blocking() -> Iterator[None]:
    """Nothing of ours may block the event loop."""
    with blockbuster_ctx(scanned_modules=["standfast"]):
        yield


@pytest.fixture(autouse=True)
def nothing_left_by_a_failure() -> Iterator[None]:
    """Whatever a failed test leaves is ended: only processes that carry this test process's own mark."""
    yield
    for pid in processes_with(RUN):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# Unconfined on purpose: these tests look at the supervisor from outside, by the pids and environments that a sandbox hides.
# The same adoption, grace and ends inside each level: tests/trust/test_confined_commands.py; through the daemon: tests/crash.
@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    environ = {**os.environ, "ANTHROPIC_API_KEY": "canary-key", "GITHUB_TOKEN": "canary-token"}
    here = Place(tmp_path, Commands(grace_ms=30_000, environ=environ))
    yield here
    here.commands.close()
    await until(lambda: not processes_with(here.mark), "all processes of the test to be gone")
