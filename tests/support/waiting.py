"""Waiting for what has no event of its own (a file that a command writes): asked again and again, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

WAIT_S = 30.0
AGAIN_S = 0.01


async def until(holds: Callable[[], object], what: str) -> None:
    """Return once `holds()` is truthy; a test that waits 30 s has failed. Asked in a thread: it may look at disks and processes."""
    async with asyncio.timeout(WAIT_S):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(AGAIN_S)
