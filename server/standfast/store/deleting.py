"""Deletes a session for good: its rows, its events, their words in the index, and the blobs that nobody else uses (issue F.5).

One transaction: after a kill the session is whole or gone. The pages that are given up are overwritten with zeros. Backups beside the
store still hold what was in it when they were made; `doctor` lists them.
"""

from __future__ import annotations

import sqlite3

from standfast.errors import NotFound
from standfast.failpoints import hit
from standfast.store import search
from standfast.store.blob_uses import drop_unused
from standfast.store.tables import DERIVED


def delete_session(connection: sqlite3.Connection, session_id: str) -> None:
    """Inside the writer's transaction. Raises NotFound (`SessionNotFound`)."""
    if connection.execute("SELECT 1 FROM sessions WHERE session_id = ?", (session_id,)).fetchone() is None:
        raise NotFound("SessionNotFound", f"There is no session {session_id}. Nothing was deleted.")
    connection.execute("PRAGMA secure_delete=ON")
    try:
        search.forget(connection, session_id)
        drop_unused(connection, session_id)
        hit("in_delete")
        for table in (*DERIVED, "damage", "events"):
            connection.execute(f'DELETE FROM "{table}" WHERE session_id = ?', (session_id,))  # noqa: S608 - our own names
    finally:
        connection.execute("PRAGMA secure_delete=OFF")
    hit("in_delete")
