"""Runs of a session: start, steer, cancel, resume, answer, end. One at a time; what cannot start now waits, durably (R1.2, R5, R13).

Each transition is one transaction, taken under the session's `turn`: a crash falls between two of them, never inside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from standfast.errors import Busy, NotAvailable, NotFound, StandfastError
from standfast.events.types import ConflictResolved, Fact, MessageQueued, RunFinished, TextContent, UserMessage
from standfast.projections.rows import CallRow, MessageRow, RunRow, SessionRow
from standfast.run.loop import Granted
from standfast.run.runtime import Answer
from standfast.session import compaction, goals, owing, permissions, queue, recovery, settling
from standfast.session.binding import require
from standfast.session.live import Live, LiveSessions
from standfast.session.parts import Parts
from standfast.session.pursuit import Pursuit
from standfast.session.starting import Starting, Tagged
from standfast.session.surroundings import Folders
from standfast.session.views import StartedRun

log = logging.getLogger("standfast.session")


class Runs:
    """The only starter and ender of runs."""

    def __init__(self, parts: Parts, live: LiveSessions) -> None:
        self._parts = parts
        self._live = live
        self._starting = Starting(parts, self._end)
        self._pursuit = Pursuit(parts, self._starting)

    @property
    def folders(self) -> Folders:
        """What editors say of folders."""
        return self._starting.folders

    # -- what a person asks for -----------------------------------------------------------------------------------

    async def start(self, row: SessionRow, content: Sequence[TextContent], client_message_id: str) -> StartedRun:
        """A new message: a run now, or a place in the queue. The same clientMessageId is the same message, for ever."""
        live = self._live.of(row.session_id)
        async with live.turn:
            known = await self._parts.store.message(row.session_id, client_message_id)
            if known is not None:
                return await self._already(row, known)
            run_id, message_id = self._parts.ids.new("run"), self._parts.ids.new("msg")
            if live.run_id is not None:
                queued = MessageQueued(
                    message_id=message_id, client_message_id=client_message_id, run_id=run_id, content=list(content)
                )
                await self._parts.journal.emit(
                    row.session_id, [*await queue.anew(self._parts, row.session_id), (run_id, queued)]
                )
                waiting = await self._parts.store.messages(session_id=row.session_id, state="queued")
                return StartedRun(run_id, "queued", position=len(waiting) - 1)
            await require(row, self._starting.folders.open)
            message = UserMessage(message_id=message_id, client_message_id=client_message_id, content=list(content))
            await self._starting.begin(live, row, run_id, self._starting.started("message"), [(run_id, message)])
            return StartedRun(run_id, "running")

    async def steer(self, run_id: str, content: Sequence[TextContent], client_message_id: str) -> None:
        """A message into the running run: the model has it with its next request."""
        live = self._live.by_run(run_id)
        if live is None:
            await self.row(run_id)
            raise NotAvailable(
                "ActionNotAvailable", "This run is not running any more. Nothing was sent. Send a new message instead."
            )
        if await self._parts.store.message(live.session_id, client_message_id) is None:
            message = UserMessage(
                message_id=self._parts.ids.new("msg"),
                client_message_id=client_message_id,
                content=list(content),
                steer=True,
            )
            await self._parts.journal.emit(live.session_id, message, run_id=run_id)

    async def cancel(self, run_id: str) -> RunRow:
        """Stop a run, or take a queued one out of the queue. Waits until its effects have ended. A second cancel is the first one's."""
        live = self._live.by_run(run_id)
        if live is not None and live.task is not None:
            live.stopped_by_person = True
            live.task.cancel()
            await asyncio.wait([live.task])
        row = await self.row(run_id)
        if row.status == "running":  # it is ending by itself just now
            async with self._live.of(row.session_id).turn:
                row = await self.row(run_id)
        if row.status == "queued":
            await queue.take_out(self._parts, row.session_id, run_id)
            row = await self.row(run_id)
        return row

    async def resume(self, run_id: str, session: SessionRow, *, confirm: bool) -> StartedRun:
        """Go on with an interrupted or failed run, in a new one. Pressed twice: the same new run.

        Raises ActionNotAvailable for a run that ended otherwise, SessionBusy, RunKeepsCrashing without `confirm`.
        """
        live = self._live.of(session.session_id)
        async with live.turn:
            await owing.pay(self._parts, live)
            row = await self.row(run_id)
            again = await self._parts.store.resuming_run(run_id)
            if again is not None:
                return StartedRun(again.run_id, "queued" if again.status == "queued" else "running")
            if row.status not in ("interrupted", "failed"):
                raise NotAvailable(
                    "ActionNotAvailable",
                    f"This run is {row.status}: only an interrupted or failed run can be resumed. Nothing was started.",
                )
            self._require_idle(live)
            await self._require_sane(row, confirm=confirm)
            await require(session, self._starting.folders.open)
            new_id = self._parts.ids.new("run")
            await self._starting.begin(live, session, new_id, self._starting.started("resume", run_id), [])
            return StartedRun(new_id, "running")

    async def retry(self, session: SessionRow, conflict_id: str) -> StartedRun:
        """A run in which the model is asked to make a refused write anew; that settles the conflict.

        Pressed in two windows at once, the second finds it settled. Raises ConflictNotFound, ActionNotAvailable.
        """
        live = self._live.of(session.session_id)
        async with live.turn:
            row = await settling.open_conflict(self._parts, conflict_id)
            settling.require_open(row)
            text = f"Please read {row.path or row.uri} again and make the change that was refused ({row.reason}) anew."
            facts: list[Tagged] = [(row.run_id, ConflictResolved(conflict_id=conflict_id, action="retry"))]
            run_id, message_id = self._parts.ids.new("run"), self._parts.ids.new("msg")
            content = [TextContent(text=text)]
            if live.run_id is not None:
                queued = MessageQueued(
                    message_id=message_id, client_message_id=message_id, run_id=run_id, content=content
                )
                facts += [*await queue.anew(self._parts, session.session_id), (run_id, queued)]
                await self._parts.journal.emit(session.session_id, facts)
                return StartedRun(run_id, "queued")
            await require(session, self._starting.folders.open)
            message = UserMessage(message_id=message_id, client_message_id=message_id, content=content)
            await self._starting.begin(
                live, session, run_id, self._starting.started("retry"), [(run_id, message)], before=facts
            )
            return StartedRun(run_id, "running")

    async def compact(self, session: SessionRow) -> None:
        """A checkpoint on demand; given up when a run begins meanwhile. Raises SessionBusy, ModelError, ActionNotAvailable."""
        live = self._live.of(session.session_id)
        async with live.turn:
            self._require_idle(live)
            if live.compacting is not None:
                raise Busy("SessionBusy", "A checkpoint is being made in this session already. Wait for it.")
            done = compaction.begin(self._parts, self._starting.folders, live, session)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            if not done.done() and live.compacting is not None:
                live.compacting.cancel()
            raise

    async def release_queue(self, session: SessionRow) -> None:
        """The person lets a held queue go on."""
        await queue.release(self._parts, self._starting, self._live.of(session.session_id), session)

    async def answer(self, call: CallRow, session: SessionRow, decision: str, digest: str, by: str) -> bool:
        """The answer to a permission. Of several, of late and of other content's answers only the first fitting one counts."""
        live = self._live.of(session.session_id)
        async with live.turn:
            call = await permissions.open_call(self._parts, call.call_id)
            if not permissions.fits(call, decision, digest):
                return False
            resolved = permissions.resolution(call, decision, by)
            question = live.questions.get(call.call_id)
            if question is not None:
                await self._parts.journal.emit(session.session_id, resolved, run_id=live.run_id)
                if not question.answer.done():
                    question.answer.set_result(Answer(decision, digest))
            elif decision == "deny":
                facts: list[Fact] = [resolved, permissions.denial(call)]
                await self._parts.journal.emit(session.session_id, facts, run_id=call.run_id)
            else:
                await self._carry_on(live, session, call, resolved, Answer(decision, digest))
            return True

    async def _carry_on(self, live: Live, session: SessionRow, call: CallRow, resolved: Fact, answer: Answer) -> None:
        """`allow` to a permission that a crash left open: the call is carried out once, in a run that resumes its own."""
        self._require_idle(live)
        await require(session, self._starting.folders.open)
        granted = Granted(call.call_id, call.tool, dict(call.args), answer)
        run_id = self._parts.ids.new("run")
        started = self._starting.started("permission", call.run_id)
        await self._starting.begin(
            live, session, run_id, started, [], before=[(call.run_id, resolved)], granted=granted
        )

    # -- begin and end --------------------------------------------------------------------------------------------

    async def _end(self, live: Live, session: SessionRow, run_id: str, end: RunFinished) -> None:
        """Record the end; after a good one the next queued message starts in the same transaction."""
        async with live.turn:
            live.run_id = live.task = None
            try:
                following = await self._record_end(live, session, run_id, end)
            except StandfastError as error:
                log.error("run end not stored", extra={"run_id": run_id, "reason": error.reason})
                owing.owe(self._parts, live, [(run_id, end)])
                return
            if following is not None:
                self._starting.go(live, session, following.run_id)
            elif end.status == "succeeded":
                await self._pursuit.consider(live)

    async def _record_end(self, live: Live, session: SessionRow, run_id: str, end: RunFinished) -> MessageRow | None:
        """Returns the queued message that was started with it, if one was. Raises StoreError: then nothing was stored."""
        await self._parts.journal.arrived()  # what a stopped run left under way: its calls count too
        now = await self._parts.store.session(session.session_id) or session
        run = await self._parts.store.run(run_id)
        towards = goals.after_run(now, end, run.trigger if run is not None else "message", self._parts.clock.now_ms())
        pending = await self._parts.store.calls(run_id=run_id, pending=True)
        facts: list[Tagged] = [*recovery.unanswered(pending), (run_id, end), *((run_id, fact) for fact in towards)]
        following = await queue.following(self._parts, session.session_id, end)
        if following is not None:
            facts += [(following.run_id, self._starting.started("queue")), *queue.sent(following)]
        await self._parts.journal.emit(session.session_id, facts)
        return following

    async def pursue(self, session_id: str) -> None:
        """The person made a goal active: let it go on."""
        await self._pursuit.consider(self._live.of(session_id))

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def row(self, run_id: str) -> RunRow:
        """Raises RunNotFound."""
        row = await self._parts.store.run(run_id)
        if row is None:
            raise NotFound("RunNotFound", f"There is no run {run_id}. Nothing was changed.")
        return row

    async def _already(self, session: SessionRow, message: MessageRow) -> StartedRun:
        run = await self._parts.store.run(message.run_id)
        queued = run is not None and run.status == "queued"
        return StartedRun(
            message.run_id, "queued" if queued else "running", position=message.position if queued else None
        )

    def _require_idle(self, live: Live) -> None:
        if live.run_id is not None:
            raise Busy(
                "SessionBusy", "A run is going on in this session. Nothing was changed. Stop it or wait for its end."
            )

    async def _require_sane(self, run: RunRow, *, confirm: bool) -> None:
        """A chain of runs that keeps dying is not resumed by one press of a button."""
        chain = [run]
        while len(chain) < recovery.CRASHES_MAX and chain[-1].resumes_run_id:
            before = await self._parts.store.run(chain[-1].resumes_run_id)
            if before is None:
                break
            chain.append(before)
        if recovery.crashes(chain) >= recovery.CRASHES_MAX and not confirm:
            raise NotAvailable(
                "RunKeepsCrashing",
                f"The daemon died {recovery.CRASHES_MAX} times while this run and its resumptions were going on. Nothing was started. "
                "Look at its last call first; resume it with confirmation if you want to try again.",
                crashes=recovery.CRASHES_MAX,
            )
