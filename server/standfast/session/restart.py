"""What the last daemon left behind, marked as what it is (R5.1, R7.1). By index; nothing outside is looked at, nothing is started."""

from __future__ import annotations

from standfast.events.types import SessionUpdated
from standfast.failpoints import hit
from standfast.session import recovery
from standfast.session.parts import Parts


async def mark(parts: Parts) -> None:
    """Runs without an end become interrupted, their calls uncertain, and queues that were going on are held."""
    await mark_runs(parts)
    for session_id in {message.session_id for message in await parts.store.messages(state="queued", limit=1000)}:
        row = await parts.store.session(session_id)
        if row is not None and not row.queue_held:
            await parts.journal.emit(session_id, SessionUpdated(queue_held=True))


async def mark_runs(parts: Parts, session_id: str | None = None) -> None:
    """The runs without an end, of one session or of all; nobody carries them out in this process."""
    for run in await parts.store.unfinished_runs():
        if session_id in (None, run.session_id):
            hit("in_recovery")
            pending = await parts.store.calls(session_id=run.session_id, pending=True)
            await parts.journal.emit(run.session_id, recovery.interruption(run, pending))
