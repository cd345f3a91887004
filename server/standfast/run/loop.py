"""One run: context → model → tools → events, until done (R1.2). It is a function that awaits `emit`; read it top to bottom."""

from __future__ import annotations

from dataclasses import dataclass

from standfast.errors import StandfastError
from standfast.events.types import AssistantMessage, ErrorInfo, Fact, RunFinished, ToolCall, Usage
from standfast.model.base import Completed, ModelRequest
from standfast.run.attempt import attempt
from standfast.run.carry_out import carry_out
from standfast.run.prompt import SYSTEM, tool_definitions
from standfast.run.runtime import Answer, Runtime


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
    try:
        if granted is not None:
            await carry_out(run, granted.call_id, granted.tool, granted.args, granted=granted.answer)
        while True:
            reply = await attempt(run, await _request(run))
            usage = _plus(usage, reply.usage)
            calls = await _record(run, reply)
            for call in calls:
                await carry_out(run, call.call_id, call.tool, call.args)
            if not calls and reply.stop_reason != "pause_turn":
                return RunFinished(status="succeeded", usage=usage)
    except StandfastError as error:
        return RunFinished(status="failed", error=ErrorInfo(reason=error.reason, message=error.message), usage=usage)


async def _request(run: Runtime) -> ModelRequest:
    context = await run.context()
    return ModelRequest(
        model=run.model_name,
        system=SYSTEM,
        messages=context.messages(),
        tools=tool_definitions(run.offered),
        max_tokens=run.max_tokens,
    )


async def _record(run: Runtime, reply: Completed) -> list[ToolCall]:
    """The reply and its calls in one transaction: no call without its message, no message without its calls."""
    calls = [
        ToolCall(call_id=run.ids.new("call"), provider_call_id=call.provider_call_id, tool=call.tool, args=call.args)
        for call in reply.calls
    ]
    message = AssistantMessage(blocks=reply.blocks, stop_reason=reply.stop_reason, usage=reply.usage)
    facts: list[Fact] = [message, *calls]
    await run.emit(facts)
    return calls


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in Usage.model_fields})
