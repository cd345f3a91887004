"""What all measurements share: a row of the table, percentiles, and the bare things that each is measured beside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Check = Callable[[float, float], bool]
"""(value, ratio) → whether the goal is met."""


@dataclass(frozen=True)
class Row:
    """One line of the table. `beside`: what it is compared with, measured in the same run; `reference` in the same unit."""

    what: str
    value: float
    unit: str
    beside: str = ""
    reference: float = 0.0
    goal: str = ""
    check: Check | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.reference if self.reference else 0.0

    @property
    def met(self) -> bool | None:
        """None: nothing was promised."""
        return None if self.check is None else self.check(self.value, self.ratio)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        known = asdict(self)
        del known["check"]
        return {**known, "ratio": round(self.ratio, 3), "met": self.met}


def at_most(limit: float) -> Check:
    return lambda value, ratio: value <= limit


def ratio_at_most(limit: float) -> Check:
    return lambda value, ratio: ratio <= limit


def ratio_at_least(limit: float) -> Check:
    return lambda value, ratio: ratio >= limit


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def fdatasync_ms(folder: Path, count: int = 200, size: int = 300) -> list[float]:
    """How long it takes to append `size` bytes to a file and make them durable."""
    took: list[float] = []
    descriptor = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(count):
            begin = time.perf_counter()
            os.write(descriptor, b"x" * size)
            os.fdatasync(descriptor)
            took.append((time.perf_counter() - begin) * 1000)
    finally:
        os.close(descriptor)
    return took


def python_ms(*words: str, count: int = 7) -> float:
    """Median time of a Python process from its start to its end."""
    took: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        took.append((time.perf_counter() - begin) * 1000)
    return median(took)
