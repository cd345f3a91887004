"""One request to the model with its retries, each an event (R4.4, reliability.md §4): text streams into the log as it comes.

Nothing of a reply that did not come whole is carried out; what was streamed of it stays in the history, marked by `model_error`.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing

from standfast.errors import StandfastError
from standfast.events.types import AssistantChunk, ModelErrorHappened, ModelRequest
from standfast.model import base
from standfast.model.retry import delay_ms
from standfast.run.runtime import Runtime

COALESCE_S = 0.04
"""Streamed text waits this long for more before it is stored and sent: the history never lags a kill by 300 ms."""


async def attempt(run: Runtime, request: base.ModelRequest) -> base.Completed:
    """Ask until there is a whole reply, or raise the ModelError that ends the run. Cancellable at each wait."""
    begun = run.clock.monotonic()
    number = 0
    while True:
        number += 1
        await run.emit(ModelRequest(attempt=number, model=request.model))
        try:
            return await _once(run, request, number)
        except base.ModelError as error:
            elapsed_ms = int((run.clock.monotonic() - begun) * 1000)
            wait_ms = delay_ms(number, error, run.random, elapsed_ms=elapsed_ms, base_ms=run.retry_base_ms)
            await run.emit(
                ModelErrorHappened(attempt=number, reason=error.reason, message=error.message, retry_after_ms=wait_ms)
            )
            if wait_ms is None:
                raise
            await run.sleep(wait_ms / 1000)


async def _once(run: Runtime, request: base.ModelRequest, number: int) -> base.Completed:
    """One stream, its text recorded in coalesced chunks; the last chunk is stored before the reply is returned."""
    chunks = _Chunks(run, number)
    try:
        async with aclosing(run.model.stream(request)) as items:
            async for item in items:
                match item:
                    case base.TextDelta(text):
                        chunks.add(text)
                    case base.Completed():
                        return item
                    case base.ThinkingDelta():
                        pass
    finally:
        await chunks.flush()
    raise base.ModelError(
        "StreamBroken", "The reply ended before it was whole. Nothing of it was carried out.", retry=True
    )


class _Chunks:
    """Gathers streamed text and emits it at most every COALESCE_S, one emit at a time, in order."""

    def __init__(self, run: Runtime, number: int) -> None:
        self._run = run
        self._attempt = number
        self._parts: list[str] = []
        self._offset = 0
        self._writing: asyncio.Task[None] | None = None
        self._one = asyncio.Lock()
        """One emit at a time: the last flush waits for the one under way, and tries again what that one could not store."""

    def add(self, text: str) -> None:
        self._parts.append(text)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._later())

    async def flush(self) -> None:
        """Store what is left; a cancelled run too keeps every word that came."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        await self._emit()

    async def _later(self) -> None:
        await asyncio.sleep(COALESCE_S)
        with contextlib.suppress(StandfastError):  # it is kept; if the next write fails too, that is the run's matter
            await asyncio.shield(self._emit())

    async def _emit(self) -> None:
        async with self._one:
            await self._store()

    async def _store(self) -> None:
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts.clear()
        offset, self._offset = self._offset, self._offset + len(text.encode("utf-16-le")) // 2
        try:
            await self._run.emit(AssistantChunk(attempt=self._attempt, offset=offset, text=text))
        except StandfastError:
            self._parts.insert(0, text)
            self._offset = offset
            raise
