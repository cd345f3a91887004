"""Work that a cancellation must not cut in half: between an effect and its record, or while a process is made (F21)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` whole; a cancellation that comes meanwhile is raised after it (a spawned process, or what it did, must not be lost)."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()
