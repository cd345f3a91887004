"""Makes a checkpoint of a long history (R6.2): one question to the model, tried again like any other, and what the log knows itself."""

from __future__ import annotations

from contextlib import aclosing

from standfast.events.types import Fact, GoalUpdated, ModelErrorHappened, SummaryCreated
from standfast.failpoints import hit
from standfast.model.base import Completed, ModelError, ModelRequest
from standfast.model.retry import delay_ms
from standfast.run import goal, summary
from standfast.run.context import Context
from standfast.run.runtime import Runtime

TAIL = 0.2
"""Share of the window that the newest turns, which stay word for word behind a checkpoint, may have."""


async def summarise(run: Runtime, context: Context) -> None:
    """Make a checkpoint of all but the newest turns, and store it. A failure or a crash in the middle leaves the one before in force.

    Raises ModelError. What it costs counts for an active goal; the log itself loses nothing.
    """
    through, messages = context.before_tail(lambda tail: summary.estimate(tail) <= run.window * TAIL)
    request = summary.request(run.model_name, messages, run.window, min(run.max_tokens, run.window // 4))
    known = await run.known()
    hit("in_summary")
    begun = run.clock.monotonic()
    reply = await _reply(run, request)
    said = "\n".join(block["text"] for block in reply.blocks if block["type"] == "text")
    text = summary.checkpoint(said, known)
    facts: list[Fact] = [SummaryCreated(through_seq=through, text=text, usage=reply.usage, model=run.model_name)]
    current = await run.goal()
    if current is not None and current["status"] == "active":
        used = goal.used(current, reply.usage, run.clock.monotonic() - begun, run.clock.now_ms())
        facts.append(GoalUpdated(goal=used))
    hit("in_summary")
    await run.emit(facts)
    hit("in_summary")


async def _reply(run: Runtime, request: ModelRequest) -> Completed:
    """A whole reply, or the error that ends the tries; each failed one is an event. Nothing of it is shown as it comes."""
    begun = run.clock.monotonic()
    number = 0
    while True:
        number += 1
        try:
            return await _once(run, request)
        except ModelError as error:
            elapsed_ms = int((run.clock.monotonic() - begun) * 1000)
            wait_ms = delay_ms(number, error, run.random, elapsed_ms=elapsed_ms, base_ms=run.retry_base_ms)
            await run.emit(
                ModelErrorHappened(attempt=number, reason=error.reason, message=error.message, retry_after_ms=wait_ms)
            )
            if wait_ms is None:
                raise
            await run.sleep(wait_ms / 1000)


async def _once(run: Runtime, request: ModelRequest) -> Completed:
    async with aclosing(run.model.stream(request)) as items:
        async for item in items:
            if isinstance(item, Completed):
                return item
    raise ModelError(
        "StreamBroken", "The checkpoint did not come whole. The one before stays in force; try again.", retry=True
    )
