"""Events into tables, inside a transaction that the caller began: the one place that writes them.

The daemon's writer, `import`, salvage and `doctor --rebuild` all come through here, so that rows are made in one way only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from standfast.errors import NotFound
from standfast.events.encode import Encoded
from standfast.events.entry import Entry
from standfast.events.types import Recorded
from standfast.projections.change import Change, Insert, Queued, Update
from standfast.projections.changes import changes
from standfast.store.blob_uses import note_uses
from standfast.store.search import index
from standfast.store.tables import KEYS, stored


class RowState:
    """What folds may look up, from the connection of the transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def queue(self, session_id: str) -> Sequence[Queued]:
        found = self._connection.execute(
            "SELECT message_id, run_id FROM messages WHERE session_id = ? AND state = 'queued' ORDER BY position, rowid",
            (session_id,),
        )
        return [Queued(*row) for row in found.fetchall()]

    def message_seq(self, session_id: str, run_id: str) -> int | None:
        found = self._connection.execute(
            "SELECT min(seq) FROM messages WHERE run_id = ? AND session_id = ? AND seq > 0", (run_id, session_id)
        )
        return found.fetchone()[0]


def append_entry(connection: sqlite3.Connection, *, entry: Entry, events: Sequence[Encoded]) -> list[Recorded]:
    """One entry, chained behind its session's newest event. Raises NotFound (`SessionNotFound`)."""
    found = head(connection, entry.session_id)
    if found is None:
        if not events or events[0].fact.type != "session_created":
            raise NotFound("SessionNotFound", f"There is no session {entry.session_id}. Nothing was stored.")
        found = (0, entry.session_id)
    seq, digest = found
    chained: list[Recorded] = []
    for event in events:
        recorded = event.at(seq + 1, digest)
        seq, digest = recorded.seq, recorded.hash
        chained.append(recorded)
    store_blobs(connection, entry.blobs)
    store_events(connection, chained)
    return chained


def store_events(connection: sqlite3.Connection, events: Sequence[Recorded]) -> None:
    """Add events of one session to the log, change the rows they concern, and move the session's head."""
    connection.executemany(
        "INSERT INTO events (session_id, seq, at_ms, run_id, type, hash, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(e.session_id, e.seq, e.at_ms, e.run_id, e.fact.type, e.hash, e.body) for e in events],
    )
    note_uses(connection, events)
    index(connection, events)
    apply_rows(connection, events)


def apply_rows(connection: sqlite3.Connection, events: Sequence[Recorded]) -> None:
    """Change the rows only: what `doctor --rebuild` does with the events that are there."""
    state = RowState(connection)
    for event in events:
        for change in changes(event, state):
            _apply(connection, change)
    if events:
        last = events[-1]
        connection.execute(
            "UPDATE sessions SET head_seq = ?, head_hash = ? WHERE session_id = ?",
            (last.seq, last.hash, last.session_id),
        )


def store_blobs(connection: sqlite3.Connection, blobs: Mapping[str, bytes]) -> None:
    """Add blobs that are not there yet."""
    if blobs:
        connection.executemany(
            "INSERT OR IGNORE INTO blobs (blob_id, size, data) VALUES (?, ?, ?)",
            [(blob_id, len(data), data) for blob_id, data in blobs.items()],
        )


def set_trusted(connection: sqlite3.Connection, *, uri: str, identity: str, trusted: bool) -> None:
    """The person trusts a folder (`identity`: what exactly), or does not any more."""
    if trusted:
        connection.execute("INSERT OR REPLACE INTO trusted VALUES (?, ?)", (uri, identity))
    else:
        connection.execute("DELETE FROM trusted WHERE workspace_uri = ?", (uri,))


def head(connection: sqlite3.Connection, session_id: str) -> tuple[int, str] | None:
    """(seq, hash) of the newest event; (0, session id) if there is none yet; None if the session is unknown."""
    found = connection.execute(
        "SELECT head_seq, head_hash FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if found is None:
        return None
    return (found[0], found[1]) if found[0] else (0, session_id)


def _apply(connection: sqlite3.Connection, change: Change) -> None:
    if isinstance(change, Update):
        where, wanted = _where(change.where)
        values = [stored(value) for value in change.values.values()] + list(change.add.values())
        connection.execute(_update(change.table, tuple(change.values), tuple(change.add), where), values + wanted)
    else:
        values = [stored(value) for value in change.row.values()]
        connection.execute(_insert(change.table, tuple(change.row), keep=isinstance(change, Insert)), values)


def _where(where: Mapping[str, Any]) -> tuple[tuple[tuple[str, int | None], ...], list[Any]]:
    """((column, how many values or None for IS NULL), …) and the values."""
    shape: list[tuple[str, int | None]] = []
    values: list[Any] = []
    for column, value in where.items():
        wanted = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else () if value is None else (value,)
        listed = [stored(item) for item in wanted]
        shape.append((column, None if value is None else len(listed)))
        values.extend(listed)
    return tuple(shape), values


# The names in these statements come from `projections.changes`, never from data.
@cache
def _update(
    table: str, columns: tuple[str, ...], added: tuple[str, ...], where: tuple[tuple[str, int | None], ...]
) -> str:
    parts = [f'"{column}" = ?' for column in columns] + [f'"{column}" = "{column}" + ?' for column in added]
    tests = [
        f'"{column}" IS NULL' if count is None else f'"{column}" IN ({", ".join("?" * count)})'
        for column, count in where
    ]
    return f'UPDATE "{table}" SET {", ".join(parts)} WHERE {" AND ".join(tests)}'  # noqa: S608


@cache
def _insert(table: str, columns: tuple[str, ...], *, keep: bool) -> str:
    key = KEYS[table]
    others = [column for column in columns if column not in key]
    sets = ", ".join(f'"{column}" = excluded."{column}"' for column in others)
    action = "NOTHING" if keep or not others else f"UPDATE SET {sets}"
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f'INSERT INTO "{table}" ({names}) VALUES ({", ".join("?" * len(columns))}) '  # noqa: S608
        f"ON CONFLICT ({', '.join(key)}) DO {action}"
    )
