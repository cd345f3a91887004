"""Open permissions: asked of whoever attaches, answered once, bound to what they showed (design.md "Going on", ATK-35)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from standfast.errors import NotFound
from standfast.events.types import PermissionRequested, PermissionResolved, ToolResult
from standfast.projections.rows import CallRow
from standfast.run.carry_out import DENIED
from standfast.run.runtime import Answer, Emit
from standfast.session.live import Live, Question
from standfast.session.parts import Parts

DECISIONS = ("allow", "deny", "allowSession")


async def ask(live: Live, emit: Emit, question: PermissionRequested, blobs: Mapping[str, bytes]) -> Answer:
    """Record a question and wait, however long, for its answer. Cancellable.

    The place for the answer is there before anybody can see the question: an answer cannot come too early.
    """
    waiting = Question(question.digest, asyncio.get_running_loop().create_future())
    live.questions[question.call_id] = waiting
    try:
        await emit(question, blobs=blobs)
        return await waiting.answer
    finally:
        live.questions.pop(question.call_id, None)


async def open_call(parts: Parts, call_id: str) -> CallRow:
    """Raises CallNotFound."""
    call = await parts.store.call(call_id)
    if call is None:
        raise NotFound("CallNotFound", f"There is no call {call_id}. Nothing was changed.")
    return call


def fits(call: CallRow, decision: str, digest: str) -> bool:
    """Whether an answer is one to the question as it stands: open, and for the same content. Pure."""
    return call.state == "asked" and decision in DECISIONS and digest == call.digest


def resolution(call: CallRow, decision: str, by: str) -> PermissionResolved:
    """The answer as the event it becomes. Pure."""
    assert decision in ("allow", "deny", "allowSession")
    key = call.allow_key if decision == "allowSession" else None
    return PermissionResolved(call_id=call.call_id, decision=decision, by=by, digest=call.digest or "", allow_key=key)


def denial(call: CallRow) -> ToolResult:
    """The result of a call that was denied while no run waited for it. Pure."""
    return ToolResult(call_id=call.call_id, status="denied", content=DENIED, recovered=True, reason="denied")


async def open_questions(parts: Parts, session_id: str) -> list[CallRow]:
    """Calls whose permission waits for an answer, also from before a crash."""
    return [call for call in await parts.store.calls(session_id=session_id, pending=True) if call.state == "asked"]
