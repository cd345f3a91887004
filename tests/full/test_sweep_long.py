"""Every system call that leaves a trace on a disk, at each of its numbers, in a one-tool run and in a three-file patch (F2).

pytest tests/full/test_sweep_long.py -n 2          some 450 points of 3 to 5 s, on two cores that do little else

How many numbers there are is counted first, in a run that nothing disturbs: a sweep that meets fewer tests nothing at the rest.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.sweep import CALLS, ONE_TOOL, STRACE, THREE_FILES, counted, sweep

CASES = {"one tool": ONE_TOOL, "three files": THREE_FILES}
MADE = {
    "one tool": {"pwrite64", "fdatasync", "write", "fsync", "renameat2", "unlink", "openat"},
    "three files": {"pwrite64", "fdatasync", "write", "fsync", "renameat2", "unlink", "openat", "openat2", "mkdir"},
}
"""The calls that a case makes, by the first of their names: one that is made no more is no longer swept, and must be noticed."""
PARTS = {"pwrite64": 8, "openat": 2}
"""Into how many tests a call's numbers are dealt out, so that several processes share the work."""
MET_LEAST = {"openat": 0.6}
"""Of the counted numbers, for calls that threads of a pool share: a number is one of a single thread, and how many each of them gets
is chance."""
MET_LEAST_ELSE = 0.9
"""Not all: streamed text is stored by time, so a run may store once less than the counted one did."""
COUNTED = 3
"""Runs that are counted; the least of them is what every run makes. (Some files are opened when it takes long: a look at a process, at
the disk.)"""

_counts: dict[str, dict[str, int]] = {}


async def _count(place: Path, name: str) -> dict[str, int]:
    if name not in _counts:
        await counted(place / "first", CASES[name])  # compiles what is not compiled yet, which opens more files
        several = [await counted(place / f"count{n}", CASES[name]) for n in range(COUNTED)]
        _counts[name] = {calls: min(each[calls] for each in several) for calls in several[0]}
    return _counts[name]


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("name", CASES)
async def test_the_sweep_names_every_call_that_is_made(tmp_path: Path, name: str) -> None:
    found = await _count(tmp_path, name)
    assert {calls.partition(",")[0] for calls, count in found.items() if count} == MADE[name]


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "calls", "part"),
    [
        pytest.param(name, calls, part, id=f"{name}-{first}-{part}")
        for calls in CALLS
        for name in CASES
        if (first := calls.partition(",")[0]) in MADE[name]
        for part in range(PARTS.get(first, 1))
    ],
)
async def test_killed_at_every_system_call_the_truth_is_found(tmp_path: Path, name: str, calls: str, part: int) -> None:
    count, step = (await _count(tmp_path, name))[calls], PARTS.get(calls, 1)
    met = await sweep(tmp_path, CASES[name], calls, range(1 + part, 2 * count + step + 1, step))
    expected = len(range(1 + part, count + 1, step))
    assert expected > 0
    assert len(met) >= max(1, int(MET_LEAST.get(calls, MET_LEAST_ELSE) * expected)), f"{len(met)} of {expected}: {met}"
    assert len(met) <= 1.5 * expected + 1, "the sweep did not come to its end"
