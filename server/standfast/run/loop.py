"""One run: context → model → tools → events, until done (R1.2). It is a function that awaits `emit`; read it top to bottom."""

from __future__ import annotations

from dataclasses import dataclass

from standfast.errors import StandfastError
from standfast.events.types import (
    AssistantMessage,
    ErrorInfo,
    Fact,
    GoalUpdated,
    RunFinished,
    ToolCall,
    ToolResult,
    Usage,
)
from standfast.model.base import Completed, RequestedCall
from standfast.run import goal
from standfast.run.carry_out import carry_out
from standfast.run.runtime import Answer, Runtime
from standfast.run.window import Window

CUT_MAX = 3
"""Replies in a row that end at their length limit before the run gives up."""
INCOMPLETE = (
    "The arguments are incomplete: the reply reached its length limit within this call. Nothing was carried out. "
    "Make the change in smaller steps."
)
TOO_LONG = (
    "The reply reached its length limit. What it said so far is in the history; nothing incomplete was carried out. "
    "Resume the run to let it go on, or raise max_tokens in the configuration."
)


@dataclass(frozen=True, slots=True)
class Granted:
    """A call of an interrupted run whose permission was answered since: it is carried out first, once (design.md "Going on")."""

    call_id: str
    tool: str
    args: dict[str, object]
    answer: Answer


async def run_loop(run: Runtime, granted: Granted | None = None) -> RunFinished:
    """Go on until the model has nothing more to do; returns the end of the run, which the caller records.

    Raises CancelledError (the person stopped it) and nothing else that is expected: what keeps a run from going on is `failed`
    with a reason, and can be resumed.
    """
    usage = Usage()
    window = Window(run)
    cut_in_a_row = 0
    try:
        if granted is not None:
            await carry_out(run, granted.call_id, granted.tool, granted.args, granted=granted.answer)
        while True:
            begun = run.clock.monotonic()
            reply = await window.ask()
            usage = _plus(usage, reply.usage)
            calls = await _record(run, reply, run.clock.monotonic() - begun)
            cut_in_a_row = cut_in_a_row + 1 if reply.stop_reason == "max_tokens" else 0
            if cut_in_a_row == CUT_MAX or (cut_in_a_row and not reply.cut):
                raise StandfastError("OutputTooLong", TOO_LONG)
            for call in calls:
                await carry_out(run, call.call_id, call.tool, call.args)
            if not calls and not reply.cut and not (await run.context()).steered:
                return RunFinished(status="succeeded", usage=usage)
    except StandfastError as error:
        return RunFinished(status="failed", error=ErrorInfo(reason=error.reason, message=error.message), usage=usage)


async def _record(run: Runtime, reply: Completed, seconds: float) -> list[ToolCall]:
    """The reply, its calls and what it cost in one transaction: no call without its message, no message without its calls.

    Calls that were cut off are answered at once: they are told to the model, and never carried out.
    """
    calls = [_proposed(run, call) for call in reply.calls]
    cut = [_proposed(run, call) for call in reply.cut]
    message = AssistantMessage(
        blocks=reply.blocks, stop_reason=reply.stop_reason, usage=reply.usage, model=run.model_name
    )
    refused = [
        ToolResult(call_id=call.call_id, status="error", content=INCOMPLETE, reason="incomplete") for call in cut
    ]
    facts: list[Fact] = [message, *calls, *cut, *refused]
    current = await run.goal()
    if current is not None and current["status"] == "active":
        facts.append(GoalUpdated(goal=goal.used(current, reply.usage, seconds, run.clock.now_ms())))
    await run.emit(facts)
    return calls


def _proposed(run: Runtime, call: RequestedCall) -> ToolCall:
    return ToolCall(call_id=run.ids.new("call"), provider_call_id=call.provider_call_id, tool=call.tool, args=call.args)


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in Usage.model_fields})
