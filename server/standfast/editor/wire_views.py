"""Rows and views of the session layer as objects of the wire. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from standfast.editor.fitting import call_actions
from standfast.events import types as facts
from standfast.model.prices import estimate_usd
from standfast.projections.attention import AttentionItem
from standfast.projections.recovery_view import targets_of, verdict_of
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, Spent
from standfast.projections.session_changes import DAY_MS
from standfast.protocol import objects as wire
from standfast.protocol.results import QueueResult, RunListResult, RunStartResult
from standfast.session.views import Recovery, RunPage, SessionView, StartedRun


def session(view: SessionView) -> wire.Session:
    row = view.row
    last = None
    if row.last_run_id is not None and row.last_run_status is not None:
        last = wire.RunState(run_id=row.last_run_id, status=cast(wire.RunStatus, row.last_run_status))
    return wire.Session(
        session_id=row.session_id,
        user_id=row.user_id,
        workspace_uri=row.workspace_uri,
        workspace_state=view.workspace_state,
        title=row.title,
        mode=cast(wire.SessionMode, row.mode),
        model=row.model,
        status=cast(wire.SessionStatus, row.status),
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        last_run=last,
        candidate_uri=view.candidate_uri,
        worktree=view.worktree,
    )


def run(row: RunRow) -> wire.Run:
    error = row.error
    return wire.Run(
        run_id=row.run_id,
        session_id=row.session_id,
        status=cast(wire.RunStatus, row.status),
        resumes_run_id=row.resumes_run_id,
        started_at_ms=row.started_at_ms,
        finished_at_ms=row.finished_at_ms,
        error=wire.RunError(reason=str(error["reason"]), message=str(error["message"])) if error else None,
        usage=_usage(row.usage) if row.usage else None,
    )


def _usage(stored: Mapping[str, Any]) -> wire.Usage:
    known = facts.Usage.model_validate(stored)
    return wire.Usage(**known.model_dump())


def started(found: StartedRun) -> RunStartResult:
    return RunStartResult(run_id=found.run_id, status=found.status, position=found.position)


def run_page(page: RunPage) -> RunListResult:
    found = page.statistics
    statistics = wire.RunStatistics(
        total=found.total,
        by_status=found.by_status,
        mean_duration_ms=found.mean_duration_ms,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        spent=[_spent(one) for one in found.spent],
    )
    return RunListResult(runs=[run(row) for row in page.runs], statistics=statistics, next_cursor=page.next_cursor)


def _spent(one: Spent) -> wire.Spent:
    return wire.Spent(
        day_at_ms=one.day * DAY_MS, model=one.model, requests=one.requests, usage=wire.Usage.model_validate(one.usage),
        estimated_usd=estimate_usd(one.model, one.usage),
    )  # fmt: skip


def queue_items(messages: Sequence[MessageRow]) -> list[wire.QueueItem]:
    return [
        wire.QueueItem(
            message_id=row.message_id,
            client_message_id=row.client_message_id,
            run_id=row.run_id,
            text=row.text,
            position=position,
        )
        for position, row in enumerate(messages)
    ]


def queue(found: tuple[list[MessageRow], bool]) -> QueueResult:
    return QueueResult(queue=queue_items(found[0]), queue_held=found[1])


def history_message(row: MessageRow) -> wire.HistoryMessage:
    return wire.HistoryMessage(
        message_id=row.message_id, session_id=row.session_id, run_id=row.run_id, text=row.text, at_ms=row.at_ms
    )


def changed_file(file: facts.ChangedFile) -> wire.ChangedFile:
    return wire.ChangedFile(uri=file.uri, kind=file.kind, from_uri=file.from_uri, diff=file.diff)


def call(row: CallRow) -> wire.Call:
    targets = [facts.Target.model_validate(target) for target in targets_of(row)]
    return wire.Call(
        call_id=row.call_id,
        session_id=row.session_id,
        run_id=row.run_id,
        tool=row.tool,
        targets=[wire.Target(uri=t.uri, command=t.command, verdict=t.verdict) for t in targets],
        verdict=cast(wire.Verdict, verdict_of(row)),
        evidence=row.evidence or "",
        resolution=cast("wire.RecoveryAction | None", row.resolution),
        actions=[] if row.dismissed else list(call_actions(row)),
    )


def recovery(found: Recovery | None) -> wire.Recovery:
    if found is None:
        return wire.Recovery(calls=[])
    interrupted = run(found.interrupted_run) if found.interrupted_run is not None else None
    return wire.Recovery(interrupted_run=interrupted, calls=[call(row) for row in found.calls])


def permission(row: CallRow) -> wire.Permission:
    files = [changed_file(facts.ChangedFile.model_validate(file)) for file in row.files]
    return wire.Permission(
        call_id=row.call_id,
        session_id=row.session_id,
        tool=row.tool,
        summary=row.summary or row.tool,
        files=files,
        digest=row.digest or "",
        sandbox=row.sandbox,
        risks=list(row.risks),
    )


def hunks(found: Sequence[Mapping[str, Any]]) -> list[wire.Hunk]:
    states = [facts.HunkState.model_validate(hunk) for hunk in found]
    return [
        wire.Hunk(index=h.index, state=h.state, reason=h.reason, line=h.line, candidate_lines=h.candidate_lines)
        for h in states
    ]


def conflict(row: ConflictRow) -> wire.Conflict:
    return wire.Conflict(
        conflict_id=row.conflict_id,
        session_id=row.session_id,
        call_id=row.call_id,
        run_id=row.run_id,
        uri=row.uri,
        reason=row.reason,
        message=str(row.detail.get("message", "")),
        state="open" if row.state == "open" else "resolved",
        action=row.action,
        hunks=hunks(row.detail.get("hunks", [])),
    )


def attention_item(item: AttentionItem) -> wire.AttentionItem:
    return wire.AttentionItem(
        code=item.code,
        session_id=item.session_id,
        uri=item.uri,
        line=item.line,
        call_id=item.call_id,
        conflict_id=item.conflict_id,
        run_id=item.run_id,
        message=item.message,
    )
