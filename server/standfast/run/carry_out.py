"""One tool call, from proposal to result: plan → permission → `tool_started` (durable) → effect → `tool_result` (R4.4, R9, R10).

Control flow and durability are visible here: between any two lines a kill -9 leaves a log from which the truth can be found.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from standfast.cancelling import to_the_end
from standfast.errors import StandfastError, WorkspaceError
from standfast.events.types import (
    SETTLED,
    ConflictRaised,
    Fact,
    PermissionRequested,
    PermissionResolved,
    ToolRecovery,
    ToolResult,
    ToolStarted,
)
from standfast.failpoints import hit
from standfast.run.permissions import decide, risks_of
from standfast.run.runtime import Answer, Runtime
from standfast.shortage import want_of
from standfast.tools.base import Outcome, Plan, StartedCall, Tool, ToolContext, Verification

log = logging.getLogger("standfast.run")

DENIED = (
    "Denied: the person refused this call. It was not carried out and had no effect. "
    "Do not try to reach the same effect another way; ask, or go on without it."
)
DENIED_BY_MODE = (
    "Denied: the session is in plan mode (reads only). Nothing was carried out. Say what you would do instead."
)
NOT_VERIFIED = "A call failed, and {}. What it did is looked at again before the session goes on; resume the run then."
CANCELLED_BEFORE = "Cancelled: the person stopped the run before this call began. It had no effect."


async def carry_out(
    run: Runtime, call_id: str, tool_name: str, args: Mapping[str, Any], *, granted: Answer | None = None
) -> None:
    """Carry out one proposed call and record its outcome. `granted`: a permission that was answered before (after a crash).

    Raises WorkspaceError after recording the result, where the workspace is gone: the run cannot go on.
    """
    tool = run.tools.get(tool_name)
    if tool is None:
        return await _refuse(
            run, call_id, f"There is no tool `{tool_name}`. Nothing was done. Use one of: {_names(run)}."
        )
    try:
        parsed = tool.Args.model_validate(args)
    except ValidationError as error:
        return await _refuse(
            run, call_id, f"The arguments do not fit `{tool_name}`. Nothing was done. {_explain(error)}"
        )
    operation_id = run.ids.new("op")
    try:
        ctx = await run.tool_context(call_id, operation_id)
        plan = await _permitted(run, tool, parsed, ctx, granted)
    except WorkspaceError as error:
        await _refuse(run, call_id, error.message)
        raise
    except asyncio.CancelledError:
        if run.stopped():  # else the daemon ends, and the call is what recovery says of it
            await _record(run, call_id, Outcome("cancelled", CANCELLED_BEFORE))
        raise
    except (OSError, StandfastError) as error:
        return await _refuse(run, call_id, _sentence(error))
    if isinstance(plan, Outcome):
        return await _record(run, call_id, plan)
    started = ToolStarted(
        call_id=call_id, intents=list(plan.intents), operation_id=operation_id, sandbox=plan.sandbox or ctx.sandbox
    )
    try:
        await to_the_end(run.emit(started, blobs=plan.blobs))
    except asyncio.CancelledError:
        if run.stopped():
            await _record(run, call_id, Outcome("cancelled", CANCELLED_BEFORE))
        raise
    hit("before_effect")
    await _effect(run, tool, parsed, plan, ctx)


# -- permission -------------------------------------------------------------------------------------------------------


async def _permitted(
    run: Runtime, tool: Tool, args: BaseModel, ctx: ToolContext, granted: Answer | None
) -> Plan | Outcome:
    """A plan that may be carried out now, or the outcome of one that may not.

    An answer holds for the content that it was given for. After each answer the plan is made again; if it shows something
    else by then, the person is asked again (design.md "Files").
    """
    plan = await tool.plan(args, ctx)
    while isinstance(plan, Plan):
        if granted is not None and granted.digest == plan.digest:
            return plan
        standing = await run.standing()
        level = plan.sandbox or ctx.sandbox
        decision = decide(
            standing.mode, plan, standing.allowed, untrusted=standing.untrusted, level=level, minimum=standing.minimum
        )
        if decision == "allow":
            return plan
        if decision == "deny":
            return Outcome("denied", DENIED_BY_MODE, reason="denied_by_mode")
        granted = await _ask(run, ctx, plan, risks_of(plan, level, standing.minimum))
        if granted.decision == "deny":
            return Outcome("denied", DENIED, reason="denied")
        plan = await tool.plan(args, ctx)
    return plan


async def _ask(run: Runtime, ctx: ToolContext, plan: Plan, risks: tuple[str, ...]) -> Answer:
    question = PermissionRequested(
        call_id=ctx.call_id, digest=plan.digest, summary=plan.summary, files=list(plan.files), risks=list(risks),
        sandbox=plan.sandbox or ctx.sandbox, allow_key=plan.allow_key,
    )  # fmt: skip
    try:
        return await run.ask(question, plan.blobs)
    except asyncio.CancelledError:
        if run.stopped():  # else the daemon ends, and the question stays open for the next one to ask
            await run.emit(
                PermissionResolved(call_id=ctx.call_id, decision="expired", by="standfast", digest=plan.digest)
            )
        raise


# -- effect -----------------------------------------------------------------------------------------------------------


async def _effect(run: Runtime, tool: Tool, args: BaseModel, plan: Plan, ctx: ToolContext) -> None:
    """Run the tool; whatever happens, the log says how it ended before anything else goes on.

    A cancel reaches the tool, which ends its effect first; only when that is recorded does the cancel go on.
    """
    effect = asyncio.ensure_future(tool.run(args, plan, ctx))
    cancelled = False
    while not effect.done():
        try:
            await asyncio.shield(effect)
        except asyncio.CancelledError:
            cancelled = True
            effect.cancel()
        except Exception:  # noqa: BLE001 - looked at below: the outcome of an effect is never guessed
            break
    hit("after_effect")
    error = asyncio.CancelledError() if effect.cancelled() else effect.exception()
    if error is None:
        hit("before_result")
        await to_the_end(_record(run, ctx.call_id, effect.result()))
    else:
        log.warning("tool died", extra={"tool": tool.name, "call_id": ctx.call_id, "error": type(error).__name__})
        await to_the_end(_verify_now(run, tool, args, plan, ctx, error))
    if cancelled:
        raise asyncio.CancelledError


async def _verify_now(
    run: Runtime, tool: Tool, args: BaseModel, plan: Plan, ctx: ToolContext, error: BaseException
) -> None:
    """A tool that died in a living daemon leaves the same question as a crash, and gets the same answer (design.md "Events")."""
    call = StartedCall(ctx.call_id, ctx.operation_id, args.model_dump(), plan.intents)
    if not plan.intents:
        return await _record(
            run, ctx.call_id, Outcome("error", f"The tool failed and changed nothing: {_sentence(error)}")
        )
    await run.emit(
        ToolRecovery(call_id=ctx.call_id, status="uncertain", evidence=f"the tool ended with {_sentence(error)}")
    )
    try:
        found = await tool.verify(call, ctx)
    except (OSError, StandfastError, ValueError) as why:
        # As after a crash: it is looked at again before the session goes on.
        said = f"it could not be checked ({_sentence(why)})"
        await run.emit(verdict_facts(ctx.call_id, Verification("unknown", (), said)))
        if isinstance(why, StandfastError):
            raise
        raise want_of(why) or StandfastError("NotVerified", NOT_VERIFIED.format(said)) from why
    await run.emit(verdict_facts(ctx.call_id, found), blobs=found.outcome.blobs if found.outcome else None)


def verdict_facts(call_id: str, found: Verification) -> list[Fact]:
    """What a verification adds to the log: the verdict, and the result where the verdict settles the call. Pure."""
    facts: list[Fact] = [
        ToolRecovery(call_id=call_id, status=found.verdict, targets=list(found.targets), evidence=found.evidence)
    ]
    if found.verdict in SETTLED:
        outcome = found.outcome or Outcome(
            "ok" if found.verdict == "applied" else "error", found.evidence or found.verdict
        )
        facts.append(result_fact(call_id, outcome, recovered=True))
    return facts


# -- recording --------------------------------------------------------------------------------------------------------


def result_fact(call_id: str, outcome: Outcome, *, recovered: bool = False) -> ToolResult:
    """An outcome as the event it becomes. Pure."""
    return ToolResult(
        call_id=call_id, status=outcome.status, content=outcome.content, exit_code=outcome.exit_code, recovered=recovered,
        files=list(outcome.files), seen=list(outcome.seen), blob=outcome.blob, reason=outcome.reason,
    )  # fmt: skip


async def _record(run: Runtime, call_id: str, outcome: Outcome) -> None:
    facts: list[Fact] = [*outcome.facts, result_fact(call_id, outcome)]
    if outcome.status == "ok" and outcome.files:
        facts += await run.superseded([file.uri for file in outcome.files])
    for conflict in outcome.conflicts:
        facts += await run.superseded([conflict.uri])
        facts.append(ConflictRaised(conflict_id=run.ids.new("conf"), call_id=call_id, **dict(conflict)))
    await run.emit(facts, blobs=outcome.blobs)


async def _refuse(run: Runtime, call_id: str, content: str) -> None:
    await _record(run, call_id, Outcome("error", content))


def _names(run: Runtime) -> str:
    return ", ".join(tool.name for tool in run.offered)


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}" for part in error.errors())


def _sentence(error: BaseException) -> str:
    if isinstance(error, StandfastError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{f': {error.filename}' if error.filename else ''}"
    return type(error).__name__
