"""Whole histories: copied, deleted, written out, taken in, put away (R3.2, R3.4, issue F). Nothing here starts anything.

A copy and an import begin with nothing open and nothing running; each is there whole or not at all, also after a kill.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from standfast.errors import StandfastError, WorkspaceError
from standfast.events.types import SessionArchived
from standfast.projections.rows import SessionRow
from standfast.session import compaction
from standfast.session.foreign_intake import take_in_file
from standfast.session.live import Live, LiveSessions, idle
from standfast.session.parts import Parts
from standfast.session.restart import mark_runs
from standfast.session.workspace import to_path
from standfast.store.export import export_session
from standfast.store.importing import import_session
from standfast.store.past import Progress

log = logging.getLogger("standfast.session")


async def fork(parts: Parts, row: SessionRow, at_seq: int | None) -> str:
    """A copy up to an event; returns its id. Raises NotAvailable (no such event)."""
    await parts.journal.settle()
    made = parts.ids.new("ses")
    await parts.store.fork(row.session_id, at_seq, made, parts.ids)
    await announce(parts, made)
    return made


async def delete(parts: Parts, live: LiveSessions, row: SessionRow) -> None:
    """Remove a session for good. Raises SessionBusy while a run goes on."""
    one = live.of(row.session_id)
    async with idle(one, "deleted"), one.checking:
        await compaction.give_up(one)
        await parts.journal.settle()
        await parts.store.delete(row.session_id)
    live.forget(row.session_id)


async def export(parts: Parts, row: SessionRow, directory_uri: str) -> None:
    """`session.json`, `events.jsonl` and `blobs/` in a new or empty folder. Raises ExportFailed."""
    folder = _place(directory_uri, "ExportFailed")
    await parts.journal.settle()
    await export_session(parts.store, row.session_id, folder)


async def take_in(parts: Parts, uri: str, *, force: bool, progress: Progress | None = None) -> str:
    """Our own export by its folder, or another agent's file. Returns the session's id. Raises ImportFailed, HistoryDamaged."""
    path = _place(uri, "ImportFailed")
    if await asyncio.to_thread(path.is_file) and path.name != "events.jsonl":
        session_id, added = await take_in_file(parts, path, progress)
    else:
        taken = await import_session(
            parts.store, path.parent if path.is_file() else path, parts.ids, force=force, progress=progress
        )
        session_id, added = taken.session_id, taken.added > 0
        for sentence in taken.skipped:
            log.warning("import left out", extra={"session_id": session_id, "what": sentence})
    if added:  # from here on it is here: what belongs to that is done, whoever stops waiting
        await asyncio.shield(parts.spawn(_arrived(parts, session_id), f"took in {session_id}"))
    return session_id


async def _arrived(parts: Parts, session_id: str) -> None:
    await mark_runs(parts, session_id)
    await announce(parts, session_id)


def _place(uri: str, reason: str) -> Path:
    """Where to write to or read from. Raises StandfastError with this reason for what is no file URI."""
    try:
        return to_path(uri)
    except WorkspaceError as error:
        raise StandfastError(reason, error.message) from None


async def announce(parts: Parts, session_id: str) -> None:
    """Let the fronts know that a session is there."""
    parts.journal.announce(await parts.store.events(session_id, limit=1))


async def archive(parts: Parts, live: Live) -> None:
    """Put a session away: it is in no list that does not ask for it, and its events are packed. Raises SessionBusy."""
    async with idle(live, "archived"):
        await compaction.give_up(live)
        await parts.journal.emit(live.session_id, SessionArchived())
    parts.spawn(put_away(parts, live.session_id), f"put away {live.session_id}")


async def put_away(parts: Parts, session_id: str) -> None:
    """Pack an archived session's events, in the background. A failure leaves them as they are."""
    try:
        await parts.store.cool(session_id)
    except StandfastError as error:
        log.warning("archive not packed", extra={"session_id": session_id, "reason": error.reason})
