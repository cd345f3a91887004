"""How much is tried: on every change a sample, with STANDFAST_FULL=1 all of it (tests/full/README.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

FULL = os.environ.get("STANDFAST_FULL", "") not in ("", "0")


def tier(every_change: Sequence[T], all_of_it: Sequence[T]) -> Sequence[T]:
    """The points to try now. What is left out on every change must be in all of it."""
    assert set(every_change) <= set(all_of_it)
    return all_of_it if FULL else every_change
