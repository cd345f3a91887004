"""A sample of the sweep over system calls (F2); all of it is in tests/full. A point that is not reached fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.sweep import ONE_TOOL, STRACE, THREE_FILES, Case, kill_at

RENAMES, UNLINKS = "renameat2,rename,renameat", "unlink,unlinkat"
POINTS = [
    (ONE_TOOL, "fdatasync", 3), (ONE_TOOL, "fdatasync", 4), (ONE_TOOL, "pwrite64", 30),
    (ONE_TOOL, RENAMES, 1), (ONE_TOOL, "fsync", 2), (ONE_TOOL, UNLINKS, 1),
    (THREE_FILES, RENAMES, 2), (THREE_FILES, "fsync", 3), (THREE_FILES, UNLINKS, 3),
]  # fmt: skip


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.requirement("R9.3")
@pytest.mark.scenario("b02")
@pytest.mark.parametrize(
    ("case", "calls", "nth"),
    POINTS,
    ids=[f"{'one' if c is ONE_TOOL else 'three'}-{calls.partition(',')[0]}-{n}" for c, calls, n in POINTS],
)
async def test_killed_within_a_system_call_the_truth_is_found(tmp_path: Path, case: Case, calls: str, nth: int) -> None:
    point = await kill_at(tmp_path / "point", case, calls, nth)
    assert point.died, "this point is not reached any more: the sweep tests nothing there"
