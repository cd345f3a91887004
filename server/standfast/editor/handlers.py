"""One function for each method of the table: wire params → a call of the session layer → the answer. No decisions here.

Each takes (core, client, params); params are checked already. Errors of the session layer become wire errors in `connection`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from standfast.editor import wire_views as views
from standfast.editor.answers import Answer, answer, with_events
from standfast.editor.clients import Client
from standfast.editor.core import Core, Measured
from standfast.editor.following import attach, detach
from standfast.editor.progress import taking_in
from standfast.editor.uris import path_of, uri_of
from standfast.events.types import TextContent
from standfast.protocol import objects, params, results
from standfast.protocol.base import PAGE_DEFAULT, PAGE_MAX, PROTOCOL_VERSION

Handler = Callable[[Core, Client, Any], Awaitable[Answer]]

DONE = answer(results.EmptyResult())


def _size(limit: int | None) -> int:
    return PAGE_DEFAULT if limit is None else min(limit, PAGE_MAX)


# -- sessions ---------------------------------------------------------------------------------------------------------


async def session_list(core: Core, client: Client, p: params.SessionListParams) -> Answer:
    found, cursor = await core.sessions.list(
        workspace_uri=p.workspace_uri, status=p.status, query=p.query, cursor=p.cursor, limit=_size(p.limit)
    )
    return answer(results.SessionListResult(sessions=[views.session(v) for v in found], next_cursor=cursor))


async def session_create(core: Core, client: Client, p: params.SessionCreateParams) -> Answer:
    view = await core.sessions.create(p.workspace_uri, title=p.title or "", mode=p.mode or "ask", model=p.model or "")
    return answer(results.SessionResult(session=views.session(view)))


async def session_attach(core: Core, client: Client, p: params.SessionAttachParams) -> Answer:
    return await attach(core, client, p)


async def session_detach(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    await core.sessions.get(p.session_id)
    detach(client, p.session_id)
    return DONE


async def session_events(core: Core, client: Client, p: params.SessionEventsParams) -> Answer:
    events, has_more = await core.sessions.events(
        p.session_id, after_seq=p.after_seq, before_seq=p.before_seq, limit=_size(p.limit)
    )
    return Answer(with_events(results.SessionEventsResult(events=[], has_more=has_more), events))


async def session_update(core: Core, client: Client, p: params.SessionUpdateParams) -> Answer:
    view = await core.sessions.update(p.session_id, title=p.title, status=p.status, mode=p.mode, model=p.model)
    return answer(results.SessionResult(session=views.session(view)))


async def session_rebind(core: Core, client: Client, p: params.SessionRebindParams) -> Answer:
    view = await core.sessions.rebind(p.session_id, p.workspace_uri)
    return answer(results.SessionResult(session=views.session(view)))


async def session_fork(core: Core, client: Client, p: params.SessionForkParams) -> Answer:
    view = await core.sessions.fork(p.session_id, p.at_seq)
    return answer(results.SessionResult(session=views.session(view)))


async def session_delete(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    view = await core.sessions.get(p.session_id)
    await core.sessions.delete(p.session_id)
    core.publisher.deleted(view)
    return DONE


async def session_compact(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    view = await core.sessions.compact(p.session_id)
    return answer(results.SessionResult(session=views.session(view)))


async def session_export(core: Core, client: Client, p: params.SessionExportParams) -> Answer:
    await core.sessions.export(p.session_id, p.directory_uri)
    return DONE


async def session_import(core: Core, client: Client, p: params.SessionImportParams) -> Answer:
    async with taking_in(client, p.work_done_token, p.uri) as progress:
        view = await core.sessions.import_(p.uri, force=bool(p.force), progress=progress)
    return answer(results.SessionResult(session=views.session(view)))


# -- runs and the queue -----------------------------------------------------------------------------------------------


async def run_start(core: Core, client: Client, p: params.RunStartParams) -> Answer:
    said = [p.text] if p.text is not None else [part.text for part in p.input or []]
    content = [TextContent(text=text) for text in said if text]
    await core.publisher.elsewhere.going_on(client, p.session_id)
    return answer(views.started(await core.sessions.run_start(p.session_id, content, p.client_message_id)))


async def run_steer(core: Core, client: Client, p: params.RunSteerParams) -> Answer:
    await core.sessions.run_steer(p.run_id, [TextContent(text=p.text)], p.client_message_id)
    return DONE


async def run_cancel(core: Core, client: Client, p: params.RunIdParams) -> Answer:
    return answer(results.RunResult(run=views.run(await core.sessions.run_cancel(p.run_id))))


async def run_resume(core: Core, client: Client, p: params.RunResumeParams) -> Answer:
    return answer(views.started(await core.sessions.run_resume(p.run_id, confirm=bool(p.confirm))))


async def run_undo(core: Core, client: Client, p: params.RunIdParams) -> Answer:
    undone = await core.sessions.run_undo(p.run_id)
    return answer(
        results.RunUndoResult(
            files=[views.changed_file(file) for file in undone.files],
            conflicts=[views.conflict(row) for row in undone.conflicts],
        )
    )


async def run_list(core: Core, client: Client, p: params.RunListParams) -> Answer:
    if p.session_id is not None:
        await core.sessions.get(p.session_id)
    page = await core.sessions.runs(
        workspace_uri=p.workspace_uri,
        session_id=p.session_id,
        status=p.status,
        cursor=p.cursor,
        limit=_size(p.limit),
    )
    return answer(views.run_page(page))


async def queue_list(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    return answer(views.queue(await core.sessions.queue(p.session_id)))


async def queue_edit(core: Core, client: Client, p: params.QueueEditParams) -> Answer:
    return answer(views.queue(await core.sessions.queue_edit(p.session_id, p.message_id, p.text)))


async def queue_move(core: Core, client: Client, p: params.QueueMoveParams) -> Answer:
    return answer(views.queue(await core.sessions.queue_move(p.session_id, p.message_id, p.position)))


async def queue_remove(core: Core, client: Client, p: params.QueueRemoveParams) -> Answer:
    return answer(views.queue(await core.sessions.queue_remove(p.session_id, p.message_id)))


async def queue_resume(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    return answer(views.queue(await core.sessions.queue_resume(p.session_id)))


# -- recovery and conflicts -------------------------------------------------------------------------------------------


async def recovery_get(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    return answer(results.RecoveryResult(recovery=views.recovery(await core.sessions.recovery(p.session_id))))


async def recovery_resolve(core: Core, client: Client, p: params.RecoveryResolveParams) -> Answer:
    return answer(results.CallResult(call=views.call(await core.sessions.recovery_resolve(p.call_id, p.action))))


async def conflict_get(core: Core, client: Client, p: params.ConflictIdParams) -> Answer:
    view = await core.sessions.conflict(p.conflict_id)
    return answer(
        results.ConflictGetResult(
            conflict_id=view.row.conflict_id,
            uri=view.row.uri,
            reason=view.row.reason,
            message=str(view.row.detail.get("message", "")),
            hunks=views.hunks(view.hunks),
            base=view.base,
            current=view.current,
            proposed=view.proposed,
            merged=view.merged,
            version=view.version,
        )
    )


async def conflict_resolve(core: Core, client: Client, p: params.ConflictResolveParams) -> Answer:
    row = await core.sessions.conflict_resolve(p.conflict_id, p.action, p.line, p.version)
    return answer(results.ConflictResult(conflict=views.conflict(row)))


async def diff_get(core: Core, client: Client, p: params.DiffGetParams) -> Answer:
    files = await core.sessions.diff(call_id=p.call_id, conflict_id=p.conflict_id, run_id=p.run_id, uri=p.uri)
    found = [objects.FileDiff(uri=f.uri, before=f.before, after=f.after, proposed=f.proposed) for f in files]
    return answer(results.DiffGetResult(files=found))


# -- the rest ---------------------------------------------------------------------------------------------------------


async def transcript_get(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    return answer(results.TranscriptResult(text=await core.sessions.transcript(p.session_id)))


async def goal_set(core: Core, client: Client, p: params.GoalSetParams) -> Answer:
    return _goal(await core.sessions.goal_set(p.session_id, p.objective, p.token_budget))


async def goal_update(core: Core, client: Client, p: params.GoalUpdateParams) -> Answer:
    goal = await core.sessions.goal_update(
        p.session_id, status=p.status, token_budget=p.token_budget, objective=p.objective
    )
    return _goal(goal)


async def goal_get(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    return _goal(await core.sessions.goal_get(p.session_id))


async def goal_clear(core: Core, client: Client, p: params.SessionIdParams) -> Answer:
    await core.sessions.goal_clear(p.session_id)
    return _goal(None)


def _goal(goal: dict[str, Any] | None) -> Answer:
    return answer(results.GoalResult(goal=objects.Goal.model_validate(goal) if goal else None))


async def message_history(core: Core, client: Client, p: params.MessageHistoryParams) -> Answer:
    rows = await core.sessions.messages(workspace_uri=p.workspace_uri, query=p.query, limit=_size(p.limit))
    return answer(results.MessageHistoryResult(messages=[views.history_message(row) for row in rows]))


async def workspace_files(core: Core, client: Client, p: params.WorkspaceFilesParams) -> Answer:
    paths = await core.sessions.workspace_files(p.workspace_uri, p.query, _size(p.limit))
    root = path_of(p.workspace_uri) or ""
    files = [objects.WorkspaceFile(uri=uri_of(f"{root.rstrip('/')}/{path}"), path=path) for path in paths]
    return answer(results.WorkspaceFilesResult(files=files))


async def workspace_trust(core: Core, client: Client, p: params.WorkspaceTrustParams) -> Answer:
    try:
        await core.sessions.workspace_trust(p.workspace_uri, trusted=p.trusted, version=p.version)
    finally:
        await core.publisher.board.look_in(p.workspace_uri)
    return DONE


async def credentials_set(core: Core, client: Client, p: params.CredentialsSetParams) -> Answer:
    await core.set_credentials(p.provider, p.key)
    return DONE


async def daemon_status(core: Core, client: Client, p: params.EmptyParams) -> Answer:
    status = await core.status()
    return answer(
        results.DaemonStatusResult(
            pid=status.pid,
            socket=status.socket,
            version=core.version,
            protocol_version=PROTOCOL_VERSION,
            store=status.store,
            base_url=status.base_url,
            clients=len(core.clients) - 1,
            runs=status.runs,
            sandbox=core.sandbox,
            degraded=[objects.Degraded(code=code, message=message) for code, message in core.degraded()],
            counters=_counters(status.measured, [one.outbox.held for one in core.clients]),
        )
    )


def _counters(seen: Measured, held: list[int]) -> objects.Counters:
    return objects.Counters(
        events=seen.events,
        commits=seen.commits,
        appends_per_commit=round(seen.appends / max(1, seen.commits), 2),
        commit_mean_ms=round(seen.commit_mean_ms, 2),
        commit_max_ms=round(seen.commit_max_ms, 2),
        writes_waiting=seen.writes_waiting,
        outgoing_bytes=sum(held),
        outgoing_max_bytes=max(held, default=0),
        loop_lag_p99_ms=round(seen.loop_lag_p99_ms, 2),
        loop_lag_max_ms=round(seen.loop_lag_max_ms, 2),
    )


HANDLERS: dict[str, Handler] = {
    "standfast/session/list": session_list,
    "standfast/session/create": session_create,
    "standfast/session/attach": session_attach,
    "standfast/session/detach": session_detach,
    "standfast/session/events": session_events,
    "standfast/session/update": session_update,
    "standfast/session/rebind": session_rebind,
    "standfast/session/fork": session_fork,
    "standfast/session/delete": session_delete,
    "standfast/session/compact": session_compact,
    "standfast/session/export": session_export,
    "standfast/session/import": session_import,
    "standfast/run/start": run_start,
    "standfast/run/steer": run_steer,
    "standfast/run/cancel": run_cancel,
    "standfast/run/resume": run_resume,
    "standfast/run/undo": run_undo,
    "standfast/run/list": run_list,
    "standfast/queue/list": queue_list,
    "standfast/queue/edit": queue_edit,
    "standfast/queue/move": queue_move,
    "standfast/queue/remove": queue_remove,
    "standfast/queue/resume": queue_resume,
    "standfast/recovery/get": recovery_get,
    "standfast/recovery/resolve": recovery_resolve,
    "standfast/conflict/get": conflict_get,
    "standfast/conflict/resolve": conflict_resolve,
    "standfast/diff/get": diff_get,
    "standfast/transcript/get": transcript_get,
    "standfast/goal/set": goal_set,
    "standfast/goal/update": goal_update,
    "standfast/goal/get": goal_get,
    "standfast/goal/clear": goal_clear,
    "standfast/message/history": message_history,
    "standfast/workspace/files": workspace_files,
    "standfast/workspace/trust": workspace_trust,
    "standfast/credentials/set": credentials_set,
    "standfast/daemon/status": daemon_status,
}
"""Method → function. A test holds it against the method table."""
