"""What waits to be sent to one client, bounded in bytes and in time (design.md "Transport", ATK-52).

A client that does not read loses its connection, not the daemon its memory; what it missed it gets by `seq` when it is back.
"""

from __future__ import annotations

import asyncio
from collections import deque

HELD_MAX = 16 * 1024 * 1024
"""Bytes kept for a client that does not read. An answer may go over it once, by its own size."""
STALL_S = 60.0
"""How long a client may leave what was sent unread."""
_BATCH = 256 * 1024


class Outbox:
    """A queue of messages and the task that writes it. `put` never waits; a client that cannot keep up is dropped."""

    def __init__(self, writer: asyncio.StreamWriter, *, held_max: int = HELD_MAX, stall_s: float = STALL_S) -> None:
        self._writer = writer
        self._held_max = held_max
        self._stall_s = stall_s
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._wake = asyncio.Event()
        self._closing = False
        self.dropped = False

    @property
    def held(self) -> int:
        """Bytes that the client has not taken yet, as far as this process holds them."""
        return self._queued + self._writer.transport.get_write_buffer_size()

    def put(self, body: bytes) -> None:
        """Queue one message body; its header is added here."""
        if self._closing or self.dropped:
            return
        if self.held > self._held_max:
            self.drop()
            return
        framed = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        self._queue.append(framed)
        self._queued += len(framed)
        self._wake.set()

    def drop(self) -> None:
        """Cut the connection at once and forget what was queued."""
        self.dropped = True
        self._queue.clear()
        self._queued = 0
        self._writer.transport.abort()
        self._wake.set()

    def close(self) -> None:
        """Send what is queued, then end `run`."""
        self._closing = True
        self._wake.set()

    async def run(self) -> None:
        """Write until closed or dropped. A lost client is no error here: the reader notices it too."""
        try:
            while not self.dropped:
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    self._writer.write(self._batch())
                    async with asyncio.timeout(self._stall_s):
                        await self._writer.drain()
                if self._closing:
                    async with asyncio.timeout(self._stall_s):
                        self._writer.close()
                        await self._writer.wait_closed()
                    return
        except (TimeoutError, OSError):
            self.drop()

    def _batch(self) -> bytes:
        """Several messages in one write, so that a burst costs one system call."""
        parts: list[bytes] = []
        size = 0
        while self._queue and size < _BATCH:
            part = self._queue.popleft()
            parts.append(part)
            size += len(part)
        self._queued -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)
