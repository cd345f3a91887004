"""Runs of a session: start, queue, cancel, resume, end. One at a time; what cannot start now waits, durably (R1.2, R5, R13).

Each transition is one transaction, taken under the session's `turn`: a crash falls between two of them, never inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from standfast.errors import Busy, NotAvailable, NotFound, StandfastError
from standfast.events.types import (
    ErrorInfo,
    Fact,
    MessageDequeued,
    MessageEdited,
    MessageQueued,
    RunFinished,
    RunStarted,
    SessionUpdated,
    TextContent,
    UserMessage,
)
from standfast.projections.rows import CallRow, MessageRow, RunRow, SessionRow
from standfast.run import goal
from standfast.run.loop import Granted, run_loop
from standfast.run.runtime import Answer
from standfast.run.window import summarise
from standfast.session import goals, permissions, recovery
from standfast.session.binding import require
from standfast.session.live import Live, LiveSessions
from standfast.session.parts import Parts
from standfast.session.surroundings import Folders, surroundings
from standfast.session.verification import verify_session
from standfast.session.views import StartedRun

log = structlog.get_logger("session")

Tagged = tuple[str | None, Fact]
"""A fact and the run that it belongs to, if to any."""


class Runs:
    """The only starter and ender of runs."""

    def __init__(self, parts: Parts, live: LiveSessions) -> None:
        self._parts = parts
        self._live = live
        self.folders = Folders()

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
                await self._parts.journal.emit(row.session_id, queued, run_id=run_id)
                waiting = await self._parts.store.messages(session_id=row.session_id, state="queued")
                return StartedRun(run_id, "queued", position=len(waiting) - 1)
            await require(row, self.folders.open)
            message = UserMessage(message_id=message_id, client_message_id=client_message_id, content=list(content))
            await self._begin(live, row, run_id, self._started("message"), [(run_id, message)])
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
        if row.status == "queued":
            for message in await self._parts.store.messages(session_id=row.session_id, state="queued"):
                if message.run_id == run_id:
                    removed = MessageDequeued(message_id=message.message_id, reason="removed")
                    await self._parts.journal.emit(row.session_id, removed, run_id=run_id)
            row = await self.row(run_id)
        return row

    async def resume(self, run_id: str, session: SessionRow, *, confirm: bool) -> StartedRun:
        """Go on with an interrupted or failed run, in a new one. Pressed twice: the same new run.

        Raises ActionNotAvailable for a run that ended otherwise, SessionBusy, RunKeepsCrashing without `confirm`.
        """
        live = self._live.of(session.session_id)
        async with live.turn:
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
            await require(session, self.folders.open)
            new_id = self._parts.ids.new("run")
            await self._begin(live, session, new_id, self._started("resume", run_id), [])
            return StartedRun(new_id, "running")

    async def retry(self, session: SessionRow, text: str, facts: Sequence[Tagged]) -> StartedRun:
        """A run in which the model is told of something the person decided (`retry` of a conflict)."""
        live = self._live.of(session.session_id)
        async with live.turn:
            run_id, message_id = self._parts.ids.new("run"), self._parts.ids.new("msg")
            content = [TextContent(text=text)]
            if live.run_id is not None:
                queued = MessageQueued(
                    message_id=message_id, client_message_id=message_id, run_id=run_id, content=content
                )
                await self._parts.journal.emit(session.session_id, [*facts, (run_id, queued)])
                return StartedRun(run_id, "queued")
            await require(session, self.folders.open)
            message = UserMessage(message_id=message_id, client_message_id=message_id, content=content)
            await self._begin(live, session, run_id, self._started("retry"), [(run_id, message)], before=facts)
            return StartedRun(run_id, "running")

    async def compact(self, session: SessionRow) -> None:
        """A checkpoint on demand. Raises SessionBusy, ModelError."""
        live = self._live.of(session.session_id)
        async with live.turn:
            self._require_idle(live)
            runtime = surroundings(self._parts, self.folders, live, session, session.last_run_id)
            await summarise(runtime, await runtime.context())

    async def release_queue(self, session: SessionRow) -> None:
        """The person lets a held queue go on."""
        live = self._live.of(session.session_id)
        async with live.turn:
            waiting = await self._parts.store.messages(session_id=session.session_id, state="queued")
            freed = SessionUpdated(queue_held=False)
            if live.run_id is not None or not waiting:
                await self._parts.journal.emit(session.session_id, freed)
                return
            await require(session, self.folders.open)
            run_id = waiting[0].run_id
            await self._begin(live, session, run_id, self._started("queue"), _sent(waiting[0]), before=[(None, freed)])

    async def change_queued(
        self,
        session: SessionRow,
        message_id: str,
        *,
        text: str | None = None,
        position: int | None = None,
        remove: bool = False,
    ) -> tuple[list[MessageRow], bool]:
        """Edit, move or remove a message that waits. Returns the queue and whether it is held.

        Raises MessageNotFound for one that does not wait (any more).
        """
        live = self._live.of(session.session_id)
        async with live.turn:
            waiting = await self._parts.store.messages(session_id=session.session_id, state="queued")
            message = next((one for one in waiting if one.message_id == message_id), None)
            if message is None:
                raise NotFound(
                    "MessageNotFound",
                    f"No message {message_id} waits in the queue. Nothing was changed; it may have been sent.",
                )
            fact = (
                MessageDequeued(message_id=message_id, reason="removed")
                if remove
                else MessageEdited(message_id=message_id, text=text, position=position)
            )
            await self._parts.journal.emit(session.session_id, fact, run_id=message.run_id)
            waiting = await self._parts.store.messages(session_id=session.session_id, state="queued")
            row = await self._parts.store.session(session.session_id)
            return waiting, bool(waiting) and row is not None and row.queue_held

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
        await require(session, self.folders.open)
        granted = Granted(call.call_id, call.tool, dict(call.args), answer)
        run_id = self._parts.ids.new("run")
        started = self._started("permission", call.run_id)
        await self._begin(live, session, run_id, started, [], before=[(call.run_id, resolved)], granted=granted)

    # -- begin and end --------------------------------------------------------------------------------------------

    async def _begin(
        self, live: Live, session: SessionRow, run_id: str, started: RunStarted, facts: Sequence[Tagged],
        *, before: Sequence[Tagged] = (), granted: Granted | None = None,
    ) -> None:  # fmt: skip
        """Record the start with all that belongs to it in one transaction, then let the loop go. Under `live.turn`."""
        await verify_session(self._parts, live, session)
        asked = await self._open_questions(session.session_id)
        expired = recovery.expiry(call for call in asked if granted is None or call.call_id != granted.call_id)
        first: Tagged = (run_id, started)
        await self._parts.journal.emit(session.session_id, [*before, *expired, first, *facts])
        self._go(live, session, run_id, granted)

    def _go(self, live: Live, session: SessionRow, run_id: str, granted: Granted | None = None) -> None:
        live.run_id, live.stopped_by_person = run_id, False
        live.task = self._parts.spawn(self._live_run(live, session, run_id, granted), f"run {run_id}")

    async def _live_run(self, live: Live, session: SessionRow, run_id: str, granted: Granted | None) -> None:
        """One run's whole life in this process. Whatever happens, its end is recorded (or the store itself is what failed)."""
        try:
            end = await run_loop(surroundings(self._parts, self.folders, live, session, run_id), granted)
        except asyncio.CancelledError:
            if not live.stopped_by_person:
                raise
            end = RunFinished(status="cancelled")
        except Exception as error:  # top of a task: a fault of ours must not take the daemon along
            log.exception("run failed", run_id=run_id)
            message = f"An internal error ended the run ({type(error).__name__}). Everything so far is kept; resume it to try again."
            end = RunFinished(status="failed", error=ErrorInfo(reason="InternalError", message=message))
        await asyncio.shield(self._parts.spawn(self._end(live, session, run_id, end), f"end {run_id}"))

    async def _end(self, live: Live, session: SessionRow, run_id: str, end: RunFinished) -> None:
        """Record the end; after a good one the next queued message starts in the same transaction."""
        async with live.turn:
            now = await self._parts.store.session(session.session_id) or session
            run = await self._parts.store.run(run_id)
            towards = goals.after_run(
                now, end, run.trigger if run is not None else "message", self._parts.clock.now_ms()
            )
            facts: list[Tagged] = [(run_id, end), *((run_id, fact) for fact in towards)]
            following = await self._following(session.session_id, end)
            if following is not None:
                facts += [(following.run_id, self._started("queue")), *_sent(following)]
            live.run_id = live.task = None
            try:
                await self._parts.journal.emit(session.session_id, facts)
            except StandfastError as error:
                # The store cannot take even this. The next start of the daemon, or a resume, finds the run without an end.
                log.error("run end not stored", run_id=run_id, reason=error.reason)
                return
            if following is not None:
                self._go(live, session, following.run_id)
            elif end.status == "succeeded":
                await self.pursue(session.session_id)

    async def pursue(self, session_id: str) -> None:
        """Let an active goal go on by itself, after a pause; called after a good end and when the person activates it, never at start."""
        row = await self._parts.store.session(session_id)
        live = self._live.of(session_id)
        if row is not None and goal.goes_on(row.goal) and live.run_id is None and not live.pursuing:
            live.pursuing = True
            self._parts.spawn(self._next_turn(live, session_id), f"goal {session_id}")

    async def _next_turn(self, live: Live, session_id: str) -> None:
        try:
            await asyncio.sleep(self._parts.goal_pause_s)
            async with live.turn:
                live.pursuing = False
                row = await self._parts.store.session(session_id)
                if row is None or row.goal is None or not goal.goes_on(row.goal) or live.run_id is not None:
                    return
                await require(row, self.folders.open)
                run_id, message_id = self._parts.ids.new("run"), self._parts.ids.new("msg")
                content = [TextContent(text=goal.prompt(row.goal))]
                message = UserMessage(message_id=message_id, client_message_id=message_id, content=content)
                await self._begin(live, row, run_id, self._started("goal"), [(run_id, message)])
        except StandfastError as error:
            log.warning("goal not pursued", session_id=session_id, reason=error.reason)
        finally:
            live.pursuing = False

    async def _following(self, session_id: str, end: RunFinished) -> MessageRow | None:
        session = await self._parts.store.session(session_id)
        if end.status != "succeeded" or session is None or session.queue_held:
            return None
        waiting = await self._parts.store.messages(session_id=session_id, state="queued")
        return waiting[0] if waiting else None

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

    async def _open_questions(self, session_id: str) -> list[CallRow]:
        return [
            call for call in await self._parts.store.calls(session_id=session_id, pending=True) if call.state == "asked"
        ]

    def _started(self, trigger: str, resumes_run_id: str | None = None) -> RunStarted:
        return RunStarted.model_validate(
            {
                "worker_id": self._parts.worker_id, "boot_id": self._parts.boot_id,
                "trigger": trigger, "resumes_run_id": resumes_run_id,
            }
        )  # fmt: skip


def _sent(message: MessageRow) -> list[Tagged]:
    """A queued message becomes one that was sent. Pure."""
    return [
        (message.run_id, MessageDequeued(message_id=message.message_id, reason="started")),
        (
            message.run_id,
            UserMessage(
                message_id=message.message_id,
                client_message_id=message.client_message_id,
                content=[TextContent(text=message.text)],
            ),
        ),
    ]
