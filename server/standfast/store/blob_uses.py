"""Which sessions' events name which blobs, so that deleting a session can take the bytes that nobody else uses (issue F.5)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from standfast.events.types import Recorded
from standfast.store.cold import legible

_NAMES = re.compile(r'"([0-9a-f]{64})"')
SILENT = frozenset({"assistant_chunk", "tool_output", "model_request", "assistant_message", "user_message"})
"""Types that name no blob."""


def note_uses(connection: sqlite3.Connection, events: Iterable[Recorded]) -> None:
    """Remember the blobs that these events name; they are stored already. Other hex of that length is no blob and is not noted."""
    named = {
        (event.session_id, name)
        for event in events
        if event.fact.type not in SILENT
        for name in _NAMES.findall(event.body)
    }
    connection.executemany("INSERT OR IGNORE INTO blob_uses SELECT blob_id, ? FROM blobs WHERE blob_id = ?", named)


def drop_unused(connection: sqlite3.Connection, session_id: str) -> None:
    """Forget a session's uses, and delete the blobs that it alone used."""
    used = [row[0] for row in connection.execute("SELECT blob_id FROM blob_uses WHERE session_id = ?", (session_id,))]
    connection.execute("DELETE FROM blob_uses WHERE session_id = ?", (session_id,))
    connection.executemany(
        "DELETE FROM blobs WHERE blob_id = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_id = ?1)",
        [(name,) for name in used],
    )


def renote(connection: sqlite3.Connection) -> None:
    """Make the table anew from the log (`doctor --rebuild`)."""
    connection.execute("DELETE FROM blob_uses")
    for session_id, seq, kind, body in connection.execute("SELECT session_id, seq, type, body FROM events"):
        if kind not in SILENT:
            named = [(session_id, name) for name in _NAMES.findall(legible(session_id, seq, 0, body))]
            connection.executemany(
                "INSERT OR IGNORE INTO blob_uses SELECT blob_id, ? FROM blobs WHERE blob_id = ?", named
            )
