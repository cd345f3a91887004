"""Requests that wait for each other: first come, first served by key; different keys side by side (design.md, method table)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turn:
    """One place in a queue, taken at arrival: tasks that start in any order still run in that of arrival."""

    def __init__(self, queue: deque[Turn] | None) -> None:
        self._queue = queue
        self._ready = asyncio.Event()

    @asynccontextmanager
    async def come(self) -> AsyncGenerator[None]:
        """Wait for this turn; the next one's begins when the block is left."""
        try:
            await self._ready.wait()
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the place up, whether it has come or not. Harmless when repeated."""
        if self._queue is None or self not in self._queue:
            return
        self._queue.remove(self)
        if self._queue:
            self._queue[0].call()

    def call(self) -> None:
        """It is this turn's time."""
        self._ready.set()


class Turns:
    """The queues of one connection, one a key."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Turn]] = {}

    def take(self, key: str | None) -> Turn:
        """A place at the end of the key's queue. None: no queue, the turn has come already."""
        if key is None:
            turn = Turn(None)
            turn.call()
            return turn
        if len(self._queues) > 64:
            self._queues = {k: queue for k, queue in self._queues.items() if queue}
        queue = self._queues.setdefault(key, deque())
        turn = Turn(queue)
        queue.append(turn)
        queue[0].call()
        return turn
