"""kill -9 in the middle of a transaction: whole old, whole new, or `partial` with two exact ways out (issue B, 3)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from files_kills import kill_often


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Path]:
    """A folder on a file system in memory where there is one: kill -9 needs no disk (tests/full uses one)."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.scenario("c05")
@pytest.mark.requirement("R9.2")
async def test_a_killed_patch_over_300_files_is_told_truly_and_can_be_completed_and_undone(memory: Path) -> None:
    verdicts = await kill_often(memory, 20, {"tool": "apply_patch"}, seed=1)
    assert "partial" in verdicts, "no kill fell into the middle: the test would prove nothing"


@pytest.mark.scenario("b02")
async def test_a_killed_write_of_30_mb_is_whole_old_or_whole_new(memory: Path) -> None:
    verdicts = await kill_often(memory, 20, {"tool": "write_file", "seed": 2}, seed=2)
    assert set(verdicts) <= {"applied", "not_applied"}
    assert "not_applied" in verdicts
