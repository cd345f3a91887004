"""The one place where a run begins to live in this process (R5, R7, R13). Whoever decides that it begins holds `live.turn`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from standfast.cancelling import to_the_end
from standfast.events.types import ErrorInfo, Fact, RunFinished, RunStarted
from standfast.projections.rows import SessionRow
from standfast.run.loop import Granted, run_loop
from standfast.session import compaction, owing, recovery
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.permissions import open_questions
from standfast.session.surroundings import Folders, surroundings
from standfast.session.verification import verify_session
from standfast.shortage import want_of

log = logging.getLogger("standfast.session")

Tagged = tuple[str | None, Fact]
"""A fact and the run that it belongs to, if to any."""

AtEnd = Callable[[Live, SessionRow, str, RunFinished], Awaitable[None]]
"""(live, session, run id, its end): record the end, and let what waits go on."""


class Starting:
    """Starts runs; `at_end` is told of each end, whatever it was."""

    def __init__(self, parts: Parts, at_end: AtEnd) -> None:
        self._parts = parts
        self._at_end = at_end
        self.folders = Folders()

    async def begin(
        self, live: Live, session: SessionRow, run_id: str, started: RunStarted, facts: Sequence[Tagged],
        *, before: Sequence[Tagged] = (), granted: Granted | None = None,
    ) -> None:  # fmt: skip
        """Record the start with all that belongs to it in one transaction, then let the loop go. Under `live.turn`."""
        await owing.pay(self._parts, live)
        await compaction.give_up(live)
        await verify_session(self._parts, live, session)
        asked = await open_questions(self._parts, session.session_id)
        expired = recovery.expiry(call for call in asked if granted is None or call.call_id != granted.call_id)
        first: Tagged = (run_id, started)
        await self._parts.journal.emit(session.session_id, [*before, *expired, first, *facts])
        self.go(live, session, run_id, granted)

    def go(self, live: Live, session: SessionRow, run_id: str, granted: Granted | None = None) -> None:
        """Let the loop of a run go whose start is recorded."""
        live.run_id, live.stopped_by_person = run_id, False
        live.task = self._parts.spawn(self._live_run(live, session, run_id, granted), f"run {run_id}")

    def started(self, trigger: str, resumes_run_id: str | None = None) -> RunStarted:
        """The fact that a run of this process starts."""
        return RunStarted.model_validate(
            {
                "worker_id": self._parts.worker_id, "boot_id": self._parts.boot_id,
                "trigger": trigger, "resumes_run_id": resumes_run_id,
            }
        )  # fmt: skip

    async def _live_run(self, live: Live, session: SessionRow, run_id: str, granted: Granted | None) -> None:
        """One run's whole life in this process. Whatever happens, its end is recorded (or the store itself is what failed)."""
        try:
            end = await run_loop(surroundings(self._parts, self.folders, live, session, run_id), granted)
        except asyncio.CancelledError:
            if not live.stopped_by_person:
                raise
            end = RunFinished(status="cancelled")
        except Exception as error:  # noqa: BLE001 - top of a task: a fault of ours must not take the daemon along
            end = RunFinished(status="failed", error=_why(error, run_id))
        await to_the_end(self._ended(live, session, run_id, end))  # a cancel that comes so late changes nothing

    async def _ended(self, live: Live, session: SessionRow, run_id: str, end: RunFinished) -> None:
        await self._at_end(live, session, run_id, end)


def _why(error: Exception, run_id: str) -> ErrorInfo:
    """What ended a run that should not have ended: the machine's want (F20), or a defect of ours, which the log tells whole."""
    want = want_of(error)
    if want is not None:
        log.warning("run failed", extra={"run_id": run_id, "reason": want.reason})
        return ErrorInfo(reason=want.reason, message=want.message)
    log.error("run failed", extra={"run_id": run_id}, exc_info=error)
    message = (
        f"An internal error ended the run ({type(error).__name__}). Everything so far is kept; resume it to try again."
    )
    return ErrorInfo(reason="InternalError", message=message)
