"""What a person decides about open matters: uncertain calls, conflicts, the changes of a run (R9.5, R11.4, design.md "Editor surface").

Writing is done by the tools that own the effect, as calls of their own with intents: a crash in the middle leaves the same truth
to be found as any other call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from standfast.errors import Busy, NotAvailable, NotFound
from standfast.events.types import (
    SETTLED,
    ConflictRaised,
    ConflictResolved,
    ErrorInfo,
    Fact,
    RecoveryResolved,
    RunFinished,
    RunStarted,
    ToolCall,
    ToolStarted,
    Verdict,
)
from standfast.failpoints import hit
from standfast.projections.rows import CallRow, ConflictRow, RunRow, SessionRow
from standfast.run.carry_out import result_fact
from standfast.session.binding import require
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.tooling import started_call, tool_context
from standfast.session.verification import is_foreign, verify_session
from standfast.session.views import Undone
from standfast.tools.base import Outcome, Settlement

CHANGING = ("complete", "undo", "stop", "removeLock")


async def resolve_call(parts: Parts, live: Live, session: SessionRow, call: CallRow, action: str) -> CallRow:
    """Carry out what the person chose for a call in `recovery`.

    Raises ActionNotAvailable where the call is not open, or the action does not fit it; then nothing was changed.
    """
    if not call.uncertain or call.dismissed:
        raise NotAvailable("ActionNotAvailable", "This call is settled already. Nothing was changed.")
    if action == "verify":
        await verify_session(parts, live, session, only=call.call_id)
        await _resolved(parts, await _again(parts, call), "verify", None)
    elif action in ("keep", "dismiss"):
        await _resolved(parts, call, action, None)
    elif action in CHANGING:
        await _settle(parts, live, session, call, action)
    else:
        raise NotAvailable("ActionNotAvailable", f"There is no action `{action}`. Nothing was changed.")
    return await _again(parts, call)


async def _settle(parts: Parts, live: Live, session: SessionRow, call: CallRow, action: str) -> None:
    tool = parts.tools.get(call.tool)
    if is_foreign(call):
        raise NotAvailable(
            "ActionNotAvailable", f"Another agent made this call; `{action}` is not possible here. Keep or dismiss it."
        )
    if tool is None:
        raise NotAvailable("ActionNotAvailable", f"The tool {call.tool} is not there any more. Nothing was changed.")
    if action == "stop" and call.verdict not in (
        "running",
        "unknown",
    ):  # unknown: the tool looks whether there is something
        raise NotAvailable("ActionNotAvailable", "Nothing of this call is running. Nothing was changed.")
    async with live.checking:
        ctx = await tool_context(parts, session, call.call_id, call.operation_id or "")
        settled = await tool.settle(action, started_call(call), ctx)
        hit("after_settle")
    if action == "stop":
        await verify_session(parts, live, session, only=call.call_id)
        call = await _again(parts, call)
    await _resolved(parts, call, action, settled)


async def _resolved(parts: Parts, call: CallRow, action: str, settled: Settlement | None) -> None:
    verdict = cast("Verdict", settled.verdict if settled is not None else call.verdict or "unknown")
    fact = RecoveryResolved.model_validate(
        {
            "call_id": call.call_id, "action": action, "verdict": verdict,
            "files": list(settled.files) if settled else [], "seen": list(settled.seen) if settled else [],
        }
    )  # fmt: skip
    await parts.journal.emit(call.session_id, fact, run_id=call.run_id)


async def _again(parts: Parts, call: CallRow) -> CallRow:
    return await parts.store.call(call.call_id) or call


# -- conflicts --------------------------------------------------------------------------------------------------------


async def open_conflict(parts: Parts, conflict_id: str) -> ConflictRow:
    """Raises ConflictNotFound."""
    row = await parts.store.conflict(conflict_id)
    if row is None:
        raise NotFound("ConflictNotFound", f"There is no conflict {conflict_id}. Nothing was changed.")
    return row


async def resolve_conflict(
    parts: Parts,
    live: Live,
    session: SessionRow,
    conflict_id: str,
    action: str,
    line: int | None,
    version: str | None = None,
) -> None:
    """`merge` and `applyAt` write (evaluated anew against the file as it is now); `keep` and `dismiss` change no byte.

    One decision at a time: of two windows the second finds it settled. Raises ConflictNotFound, WorkspaceError, and
    ActionNotAvailable where it does not fit any more; then nothing was changed and the conflict stays.
    """
    async with live.turn, live.checking:
        row = await open_conflict(parts, conflict_id)
        require_open(row)
        if action in ("keep", "dismiss"):
            fact = ConflictResolved(conflict_id=conflict_id, action=action)
            await parts.journal.emit(row.session_id, fact, run_id=row.run_id)
            return
        if action not in ("merge", "applyAt") or (action == "applyAt" and line is None):
            raise NotAvailable("ActionNotAvailable", f"`{action}` does not fit this conflict. Nothing was changed.")
        await require(session)
        args = {"conflict": row.detail, "action": action, "line": line, "version": version}
        outcome = await _own_call(parts, session, row.run_id, "resolve_conflict", args, settles=conflict_id)
    if outcome.status != "ok":
        raise NotAvailable("ActionNotAvailable", outcome.content)


def require_open(row: ConflictRow) -> None:
    """Raises ActionNotAvailable for a conflict that is settled."""
    if row.state != "open":
        raise NotAvailable("ActionNotAvailable", "This conflict is settled already. Nothing was changed.")


# -- undo -------------------------------------------------------------------------------------------------------------


async def undo_run(parts: Parts, live: Live, session: SessionRow, run: RunRow) -> Undone:
    """Take back what a run changed, as a run of its own that can be undone in turn.

    Raises SessionBusy while a run goes on, ActionNotAvailable where there is nothing to undo.
    """
    async with live.turn:
        if live.run_id is not None:
            raise Busy(
                "SessionBusy", "A run is going on in this session. Nothing was undone. Stop it or wait for its end."
            )
        done = [
            call
            for call in reversed(await parts.store.calls(run_id=run.run_id))
            if call.state == "done" and call.result_status == "ok"
        ]
        changes = [change for call in done for change in reversed(call.files)]
        made = [path for call in done for intent in call.intents for path in intent.get("made", ())]
        if not changes:
            raise NotAvailable(
                "ActionNotAvailable", "This run changed no file that could be restored. Nothing was undone."
            )
        await require(session)
        run_id = parts.ids.new("run")
        started = RunStarted(worker_id=parts.worker_id, boot_id=parts.boot_id, trigger="undo", resumes_run_id=None)
        await parts.journal.emit(session.session_id, started, run_id=run_id)
        outcome = await _own_call(parts, session, run_id, "undo", {"changes": changes, "made": made}, settles=None)
        error = (
            None if outcome.status == "ok" else ErrorInfo(reason=outcome.reason or "NotUndone", message=outcome.content)
        )
        end = RunFinished(status="succeeded" if error is None else "failed", error=error)
        await parts.journal.emit(session.session_id, end, run_id=run_id)
        raised = [row for row in await parts.store.conflicts(session_id=session.session_id) if row.run_id == run_id]
        return Undone(list(outcome.files), raised)


async def _own_call(
    parts: Parts, session: SessionRow, run_id: str, name: str, args: Mapping[str, Any], *, settles: str | None
) -> Outcome:
    """Run one of our own writing tools as a call in the log: intents before the effect, the result after it."""
    tool = parts.tools[name]
    call_id, operation_id = parts.ids.new("call"), parts.ids.new("op")
    ctx = await tool_context(parts, session, call_id, operation_id)
    parsed = tool.Args.model_validate(args)
    plan = await tool.plan(parsed, ctx)
    if isinstance(plan, Outcome):
        outcome, started = plan, list[Fact]()
    else:
        started = [
            ToolCall(call_id=call_id, provider_call_id="", tool=name, args=dict(args)),
            ToolStarted(call_id=call_id, intents=list(plan.intents), operation_id=operation_id),
        ]
        await parts.journal.emit(session.session_id, started, run_id=run_id, blobs=plan.blobs)
        hit("before_effect")
        outcome = await tool.run(parsed, plan, ctx)
        hit("after_effect")
    outcome = replace(outcome, seen=())  # the person did this: what the model last saw is what it was (R11)
    facts: list[Fact] = [result_fact(call_id, outcome)] if started else []
    for conflict in outcome.conflicts:
        facts.append(ConflictRaised(conflict_id=parts.ids.new("conf"), call_id=call_id, **dict(conflict)))
    if settles is not None and outcome.status == "ok":
        action = str(args["action"])
        facts.append(ConflictResolved(conflict_id=settles, action=action, files=list(outcome.files)))
    if facts:
        await parts.journal.emit(session.session_id, facts, run_id=run_id, blobs=outcome.blobs)
    return outcome


def settled(call: CallRow) -> bool:
    """Nothing is left to find out about a call. Pure."""
    return call.verdict in SETTLED or call.resolution in ("complete", "undo")
