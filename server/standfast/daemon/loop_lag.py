"""How late the loop comes to what is due: what blocks it shows here (performance.md, loop stalls)."""

from __future__ import annotations

import asyncio
from collections import deque

LOOK_S = 0.25
KEPT = 1200
"""Looks that are remembered: five minutes."""


class LoopLag:
    """`watch` looks now and then; the rest tells what was seen. A stall is seen if it lies across a look."""

    def __init__(self) -> None:
        self._late_ms: deque[float] = deque(maxlen=KEPT)
        self.max_ms = 0.0
        """Since the start."""

    async def watch(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_S
            await asyncio.sleep(LOOK_S)
            self.saw((loop.time() - due) * 1000)

    def saw(self, late_ms: float) -> None:
        """One look came so late."""
        self._late_ms.append(max(0.0, late_ms))
        self.max_ms = max(self.max_ms, late_ms)

    @property
    def p99_ms(self) -> float:
        """Of the last minutes."""
        ordered = sorted(self._late_ms)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0
