"""The facade that fronts use: sessions, runs, the queue, recovery, conflicts (R1, R2, R5, R7, R13). START HERE for what can be asked.

Each method reads rows or hands over to the module that owns the matter; nothing here knows an editor, a wire type or a tool.
Errors are `StandfastError`s with a reason; an error means that nothing was changed.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from standfast.errors import NotAvailable, NotFound, WorkspaceError
from standfast.events.types import (
    GoalUpdated,
    SessionCreated,
    SessionRebound,
    SessionUpdated,
    TextContent,
)
from standfast.failpoints import hit
from standfast.projections.attention import AttentionItem, attention
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, SessionRow
from standfast.run import goal
from standfast.session import goals, histories, history, permissions, queue, restart, settling, trusting
from standfast.session.attaching import Attaching
from standfast.session.binding import relate, view, views
from standfast.session.live import LiveSessions, idle
from standfast.session.parts import Parts
from standfast.session.runs import Runs
from standfast.session.verification import verify_session
from standfast.session.views import (
    Attached,
    ConflictView,
    FileDiff,
    Recovery,
    RunPage,
    SessionView,
    StartedRun,
    Undone,
    WireEvent,
)
from standfast.session.workspace import identify, to_path, to_uri

Queue = tuple[list[MessageRow], bool]
"""Queued messages by position, and whether they are held."""


class Sessions:
    """All sessions of one store. One instance a daemon, built by `daemon/`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store
        self._live = LiveSessions()
        self._runs = Runs(parts, self._live)
        self._attaching = Attaching(parts)

    # -- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Mark runs without an end as interrupted and their calls as uncertain (R5.1, R7.1). By index; nothing outside is looked at."""
        await restart.mark(self._parts)

    def busy(self) -> bool:
        """A run, or a command that outlived a crash, keeps the daemon from its idle exit."""
        return self.live_runs() > 0 or self._live.watching() or self._live.pursuing()

    def live_runs(self) -> int:
        """Runs going on in this process."""
        return sum(1 for _ in self._live.running())

    # -- sessions -------------------------------------------------------------------------------------------------

    async def list(
        self,
        *,
        workspace_uri: str | None = None,
        status: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> tuple[builtins.list[SessionView], str | None]:
        """Newest first, by page. With a folder: its own sessions, those of other worktrees, and those that seem to have moved here."""
        related = await relate(self._store, workspace_uri) if workspace_uri is not None else None
        rows, following = await self._store.sessions(
            workspace_uris=related.all() if related is not None else None,
            status=status, query=query, cursor=cursor, limit=history.bounded(limit),
        )  # fmt: skip
        return await views(rows, related, workspace_uri), following

    async def create(self, workspace_uri: str, *, title: str = "", mode: str = "ask", model: str = "") -> SessionView:
        """Raises WorkspaceNotFound where the folder is not there."""
        fact = SessionCreated.model_validate(
            {
                "workspace_uri": workspace_uri, "title": title, "mode": mode, "model": model,
                "user_id": self._parts.user_id, "identity": await self._identity(workspace_uri),
            }
        )  # fmt: skip
        session_id = self._parts.ids.new("ses")
        await self._parts.journal.emit(session_id, fact)
        self._warm()
        return await self.get(session_id)

    async def get(self, session_id: str) -> SessionView:
        """Raises SessionNotFound."""
        return await view(await self._row(session_id))

    async def attach(
        self, session_id: str, *, after_seq: int | None = None, after_hash: str | None = None, limit: int | None = None
    ) -> Attached:
        """Verify what is uncertain, make everything so far durable, and answer (design.md "Paging", "Verdicts").

        The caller must have subscribed to the journal before, and drop live events up to `head_seq`. Costs the same for any length
        of history (R5.2). Raises SessionNotFound.
        """
        await self._check(await self._row(session_id))
        await self._parts.journal.settle()
        self._warm()
        row = await self._row(session_id)
        return await self._attaching.attach(row, after_seq=after_seq, after_hash=after_hash, limit=limit)

    async def events(
        self, session_id: str, *, after_seq: int | None = None, before_seq: int | None = None, limit: int | None = None
    ) -> tuple[builtins.list[WireEvent], bool]:
        """(events ascending, has_more). Raises SessionNotFound."""
        found = await history.page(self._store, session_id, after_seq=after_seq, before_seq=before_seq, limit=limit)
        if not found[0]:  # only then it is a question: whoever reads a long history pays for one look a page
            await self._row(session_id)
        return found

    async def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        status: str | None = None,
        mode: str | None = None,
        model: str | None = None,
    ) -> SessionView:
        """Change a session's facts; archiving is a status. A run that goes on takes a new mode from its next call on."""
        row = await self._row(session_id)
        if status == "archived" and row.status != "archived":
            await histories.archive(self._parts, self._live.of(session_id))
            status = None
        changes = {"title": title, "status": status, "mode": mode, "model": model}
        if any(value is not None for value in changes.values()):
            await self._parts.journal.emit(session_id, SessionUpdated.model_validate(changes))
        return await self.get(session_id)

    async def rebind(self, session_id: str, workspace_uri: str) -> SessionView:
        """Bind a session to another folder; relative paths mean that folder from then on (R2.2). Raises SessionBusy, WorkspaceNotFound."""
        row, identity = await self._row(session_id), await self._identity(workspace_uri)
        async with idle(self._live.of(session_id), "rebound"):
            fact = SessionRebound(workspace_uri=workspace_uri, from_uri=row.workspace_uri, identity=identity)
            hit("in_rebind")
            await self._parts.journal.emit(session_id, fact)
            hit("in_rebind")
        return await self.get(session_id)

    async def fork(self, session_id: str, at_seq: int | None = None) -> SessionView:
        """A copy up to an event, under new ids, with nothing open. Raises SessionNotFound, ActionNotAvailable (no such event)."""
        return await self.get(await histories.fork(self._parts, await self._row(session_id), at_seq))

    async def delete(self, session_id: str) -> None:
        """Remove a session for good, with the bytes that nobody else uses. Raises SessionNotFound, SessionBusy."""
        await histories.delete(self._parts, self._live, await self._row(session_id))
        self._attaching.forget(session_id)

    async def export(self, session_id: str, directory_uri: str) -> None:
        """Write a session as files. Raises SessionNotFound, ExportFailed."""
        await histories.export(self._parts, await self._row(session_id), directory_uri)

    async def import_(
        self, uri: str, *, force: bool = False, progress: histories.Progress | None = None
    ) -> SessionView:
        """Take a session in: our export, or another agent's file. One that is here already adds nothing.

        `progress` is told the number of events stored so far. Cancelled, it leaves nothing. Raises ImportFailed, HistoryDamaged
        (without `force`).
        """
        return await self.get(await histories.take_in(self._parts, uri, force=force, progress=progress))

    # -- runs and the queue ---------------------------------------------------------------------------------------

    async def run_start(self, session_id: str, content: Sequence[TextContent], client_message_id: str) -> StartedRun:
        """A message of the person's: a run now, or a place in the queue. The same clientMessageId is one message, across restarts."""
        row = await self._row(session_id)
        if row.status == "archived":
            raise NotAvailable(
                "ActionNotAvailable", "The session is archived. Nothing was sent. Set its status to active first."
            )
        return await self._runs.start(row, content, client_message_id)

    async def run_steer(self, run_id: str, content: Sequence[TextContent], client_message_id: str) -> None:
        """A message into the running run, read by the model after the current tool call."""
        await self._runs.steer(run_id, content, client_message_id)

    async def run_cancel(self, run_id: str) -> RunRow:
        """Stop a run with everything it started; returns when that is done."""
        return await self._runs.cancel(run_id)

    async def run_resume(self, run_id: str, *, confirm: bool = False) -> StartedRun:
        """Go on with an interrupted or failed run."""
        run = await self._runs.row(run_id)
        return await self._runs.resume(run_id, await self._row(run.session_id), confirm=confirm)

    async def run_undo(self, run_id: str) -> Undone:
        """Take back what a run changed, merging with what came after; where that cannot be done, conflicts say so."""
        run = await self._runs.row(run_id)
        session = await self._row(run.session_id)
        return await settling.undo_run(self._parts, self._live.of(run.session_id), session, run)

    async def runs(
        self,
        *,
        workspace_uri: str | None = None,
        session_id: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> RunPage:
        """Runs, newest first, with statistics over all that were selected (R3.3)."""
        uris = (await relate(self._store, workspace_uri)).all() if workspace_uri is not None else None
        runs, following = await self._store.runs(
            session_id=session_id, workspace_uris=uris, status=status, cursor=cursor, limit=history.bounded(limit)
        )
        statistics = await self._store.run_statistics(session_id=session_id, workspace_uris=uris, status=status)
        return RunPage(runs, statistics, following)

    async def queue(self, session_id: str) -> Queue:
        """Raises SessionNotFound."""
        row = await self._row(session_id)
        waiting = await self._store.messages(session_id=session_id, state="queued", limit=history.LIMIT_MAX)
        return waiting, row.queue_held and bool(waiting)

    async def queue_edit(self, session_id: str, message_id: str, text: str) -> Queue:
        """Raises MessageNotFound where the message is not queued any more."""
        return await queue.change(
            self._parts, self._live.of(session_id), await self._row(session_id), message_id, text=text
        )

    async def queue_move(self, session_id: str, message_id: str, position: int) -> Queue:
        """`position` counts from 0; beyond the end is the end."""
        return await queue.change(
            self._parts, self._live.of(session_id), await self._row(session_id), message_id, position=position
        )

    async def queue_remove(self, session_id: str, message_id: str) -> Queue:
        """The message stays in the history of what the person wrote."""
        return await queue.change(
            self._parts, self._live.of(session_id), await self._row(session_id), message_id, remove=True
        )

    async def queue_resume(self, session_id: str) -> Queue:
        """Let a held queue go on."""
        await self._runs.release_queue(await self._row(session_id))
        return await self.queue(session_id)

    # -- recovery, permissions, conflicts -------------------------------------------------------------------------

    async def open_workspaces(self, workspace_uris: Sequence[str]) -> builtins.list[str]:
        """A client opened these folders: verify their sessions' uncertain calls. Returns ids of sessions with open matters."""
        for uri in workspace_uris:
            self._runs.folders.opened(uri)
        sources = await self.attention_sources(workspace_uris)
        for session_id in sources:
            await self._check(await self._row(session_id))
        lapsed = await trusting.sessions_of_lapsed(self._store, self._runs.folders, workspace_uris)
        return list(dict.fromkeys([*sources, *lapsed]))

    async def attention_sources(self, workspace_uris: Sequence[str]) -> builtins.list[str]:
        """Ids of the sessions bound to these folders that have something a person must look at, by index."""
        uris = [uri for asked in workspace_uris for uri in (await relate(self._store, asked)).all()]
        return await self._store.sessions_with_open_matters(uris)

    async def attention(self, session_id: str) -> builtins.list[AttentionItem]:
        """What a person must look at in a session, by file. Raises SessionNotFound."""
        row = await self._row(session_id)
        run = await self._store.run(row.last_run_id) if row.last_run_id else None
        return attention(
            row,
            run,
            await self._store.calls(session_id=session_id, recovery=True),
            await self._store.conflicts(session_id=session_id),
            await self.open_permissions(session_id),
            await self._attaching.damage(session_id),
            await trusting.lapsed(self._store, self._runs.folders, row),
        )

    async def recovery(self, session_id: str) -> Recovery | None:
        """What the last interruption left, verified; None if nothing is left of it."""
        await self._check(await self._row(session_id))
        return await self._attaching.recovery(await self._row(session_id))

    async def recovery_resolve(self, call_id: str, action: str) -> CallRow:
        """Carry out what the person chose for an uncertain call. Raises CallNotFound, ActionNotAvailable."""
        call = await permissions.open_call(self._parts, call_id)
        live = self._live.of(call.session_id)
        return await settling.resolve_call(self._parts, live, await self._row(call.session_id), call, action)

    async def open_permissions(self, session_id: str) -> builtins.list[CallRow]:
        """Calls whose permission waits for an answer, also from before a crash."""
        return await permissions.open_questions(self._parts, session_id)

    async def answer(self, call_id: str, decision: str, digest: str, by: str) -> bool:
        """An answer to a permission. False: it came too late, twice, or for another content; nothing changed."""
        call = await permissions.open_call(self._parts, call_id)
        return await self._runs.answer(call, await self._row(call.session_id), decision, digest, by)

    async def conflict(self, conflict_id: str) -> ConflictView:
        """Raises ConflictNotFound."""
        return await history.conflict_view(self._parts, await settling.open_conflict(self._parts, conflict_id))

    async def conflict_resolve(
        self, conflict_id: str, action: str, line: int | None = None, version: str | None = None
    ) -> ConflictRow:
        """Settle a refused write. `retry` starts a run that tells the model. Raises ConflictNotFound, ActionNotAvailable."""
        row = await settling.open_conflict(self._parts, conflict_id)
        session = await self._row(row.session_id)
        if action == "retry":
            await self._runs.retry(session, conflict_id)
        else:
            live = self._live.of(row.session_id)
            await settling.resolve_conflict(self._parts, live, session, conflict_id, action, line, version)
        return await settling.open_conflict(self._parts, conflict_id)

    async def diff(
        self,
        *,
        call_id: str | None = None,
        conflict_id: str | None = None,
        run_id: str | None = None,
        uri: str | None = None,
    ) -> builtins.list[FileDiff]:
        """Whole texts before and after, of a call, of all of a run, or of a conflict (with what was proposed)."""
        if conflict_id is not None:
            files = [history.conflict_diff(await self.conflict(conflict_id))]
        elif call_id is not None:
            files = await history.call_diffs(self._parts, [await permissions.open_call(self._parts, call_id)])
        elif run_id is not None:
            run = await self._runs.row(run_id)
            calls = await self._store.calls(run_id=run.run_id)
            files = await history.call_diffs(self._parts, [one for one in calls if one.state != "done" or one.files])
        else:
            raise NotAvailable("ActionNotAvailable", "Say which difference: give a callId, a conflictId or a runId.")
        return [file for file in files if uri is None or file.uri == uri]

    # -- the rest -------------------------------------------------------------------------------------------------

    async def transcript(self, session_id: str) -> str:
        """The session as text for people."""
        await self._row(session_id)
        return await history.session_transcript(self._store, session_id)

    async def messages(
        self, *, workspace_uri: str | None = None, query: str | None = None, limit: int | None = None
    ) -> builtins.list[MessageRow]:
        """What the person wrote, over all sessions, newest first (R3.5)."""
        uris = (await relate(self._store, workspace_uri)).all() if workspace_uri is not None else None
        return await self._store.messages(workspace_uris=uris, query=query, limit=history.bounded(limit))

    async def workspace_files(self, workspace_uri: str, query: str, limit: int | None = None) -> builtins.list[str]:
        """Relative paths for @-completion, gitignore respected."""
        folder = to_path(workspace_uri)
        if self._parts.list_files is None:
            return []
        return await self._parts.list_files(folder, query, min(history.bounded(limit), 200))

    async def workspace_trust(self, workspace_uri: str, *, trusted: bool, version: str | None = None) -> None:
        """The person trusts a folder, or does not any more; bound to the folder itself and to what would act in it."""
        await self._identity(workspace_uri)
        await trusting.give(self._store, workspace_uri, trusted=trusted, version=version)

    def declare_untrusted(self, workspace_uris: Sequence[str], *, untrusted: bool) -> None:
        """The editor itself says that the folder is untrusted: `plan` and `ask` only (design.md "Small print")."""
        self._runs.folders.declare(workspace_uris, trusted=not untrusted)

    async def goal_set(self, session_id: str, objective: str, token_budget: int | None = None) -> dict[str, Any]:
        """A new goal, active: the session goes on towards it by itself, with a pause between turns."""
        await self._row(session_id)
        made = goal.new(objective, token_budget, self._parts.clock.now_ms())
        await self._parts.journal.emit(session_id, GoalUpdated(goal=made))
        await self._runs.pursue(session_id)
        return made

    async def goal_update(
        self,
        session_id: str,
        *,
        status: str | None = None,
        token_budget: int | None = None,
        objective: str | None = None,
    ) -> dict[str, Any]:
        """Pause, resume, edit. Raises ActionNotAvailable where no goal is set."""
        row = await self._row(session_id)
        now_ms = self._parts.clock.now_ms()
        made = goals.updated(row, now_ms, status=status, token_budget=token_budget, objective=objective)
        await self._parts.journal.emit(session_id, GoalUpdated(goal=made))
        await self._runs.pursue(session_id)
        return made

    async def compact(self, session_id: str) -> SessionView:
        """Make a checkpoint now (R6.2). Raises SessionBusy during a run, ModelError; then the checkpoint before stays in force."""
        await self._runs.compact(await self._row(session_id))
        return await self.get(session_id)

    async def goal_get(self, session_id: str) -> dict[str, Any] | None:
        """The session's goal as R6.3 has it, None if there is none."""
        return (await self._row(session_id)).goal

    async def goal_clear(self, session_id: str) -> None:
        """Take the goal away."""
        await self._row(session_id)
        await self._parts.journal.emit(session_id, GoalUpdated(goal=None))

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def _row(self, session_id: str) -> SessionRow:
        row = await self._store.session(session_id)
        if row is None:
            raise NotFound(
                "SessionNotFound",
                f"There is no session {session_id}. Nothing was changed. List the sessions to see what is there.",
            )
        return row

    async def _check(self, row: SessionRow) -> None:
        await verify_session(self._parts, self._live.of(row.session_id), row)

    async def _identity(self, workspace_uri: str) -> dict[str, Any]:
        folder = to_path(workspace_uri)
        found = await identify(folder)
        if found is None:
            raise WorkspaceError(
                "WorkspaceNotFound",
                f"There is no folder {folder}. Nothing was changed. Choose one that exists.",
                workspaceUri=to_uri(folder),
            )
        return found.to_json()

    def _warm(self) -> None:
        """Load the provider's SDK off the loop, the first time a session is looked at."""
        self._parts.spawn(self._parts.model.warm(), "warm the model")
