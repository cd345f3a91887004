"""Every system call that leaves a trace on a disk, at each of its numbers, in a one-tool run and in a three-file patch (F2).

pytest tests/full/test_sweep_long.py -n 2          about 20 minutes on two cores
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.sweep import CALLS, ONE_TOOL, STRACE, THREE_FILES, sweep

CASES = {"one tool": ONE_TOOL, "three files": THREE_FILES}
LEAST = {
    ("one tool", "pwrite64"): 60, ("one tool", "fdatasync"): 7, ("one tool", "fsync"): 2,
    ("one tool", "renameat2,rename,renameat"): 1, ("one tool", "unlink,unlinkat"): 1, ("one tool", "write"): 1,
    ("three files", "pwrite64"): 60, ("three files", "fdatasync"): 7, ("three files", "fsync"): 6,
    ("three files", "renameat2,rename,renameat"): 5, ("three files", "unlink,unlinkat"): 5,
    ("three files", "mkdir,mkdirat"): 1,
}  # fmt: skip
"""How many points each sweep had when it was written: fewer means that it no longer hits what it should."""
NTH_MAX = 400


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("name", CASES)
async def test_killed_at_every_system_call_the_truth_is_found(tmp_path: Path, name: str, calls: str) -> None:
    reached = await sweep(tmp_path, CASES[name], {calls: range(1, NTH_MAX)})
    points = reached.get(calls, [])
    assert len(points) >= LEAST.get((name, calls), 0), points
    assert len(points) < NTH_MAX - 1, "the sweep did not come to its end"
