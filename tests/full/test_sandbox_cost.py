"""What the sandbox costs a command at its start, as a ratio to none (issue G, shown 4). Needs a quiet machine."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from process.place import Place
from standfast.process.launch import Commands
from standfast.tools.run_command import RunCommand
from trust.conftest import confined_place

TIMES_MAX = 4.0
"""Measured: about 1.5 (some 40 ms of 80 ms)."""


async def test_the_sandbox_costs_a_start_little(tmp_path: Path) -> None:
    async def typical(place: Place) -> float:
        tool, taken = RunCommand(place.commands), list[float]()
        for _ in range(7):
            begun = time.perf_counter()
            await place.call(tool, command="true")
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    for name in ("confined", "free"):
        (tmp_path / name).mkdir()
    confined = confined_place(tmp_path / "confined", "full")
    ratio = await typical(confined) / await typical(Place(tmp_path / "free", Commands()))
    assert ratio < TIMES_MAX, f"{ratio:.1f} times as long"
