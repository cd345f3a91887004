"""A damaged store: moved away with its bytes untouched, and what can still be read carried into a new one (a15).

Damaged pages make SQLite refuse some rows and not others, so rows are read by their number, around the ones it refuses.
A session's events are taken in order and numbered anew; where some are missing, the session says so (`damage`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standfast.events.types import Recorded, SessionCreated
from standfast.store.adopt import adopt, note_damage
from standfast.store.apply import store_blobs
from standfast.store.cold import event_of
from standfast.store.past import Past

STEP = 100
GAP_MAX = 20_000
"""Row numbers without any readable row after which reading stops, where the last number cannot be asked for."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What was carried over, and how many rows could not be read."""

    sessions: int = 0
    events: int = 0
    unreadable: int = 0

    @property
    def lost_words(self) -> str:
        return f"{self.unreadable} rows could not be read. " if self.unreadable else ""


def move_away(path: Path, now_ms: int) -> Path:
    """Rename the database and what lies beside it to `*.corrupt-<ms>`; returns the new name of the database."""
    moved = path.with_name(f"{path.name}.corrupt-{now_ms}")
    for end in ("", "-wal", "-shm"):
        name = path.with_name(path.name + end)
        if name.exists():
            name.rename(moved.with_name(moved.name + end))
    return moved


def salvage(damaged: Path, target: sqlite3.Connection) -> Saved:
    """Carry over what can be read, in one transaction. The damaged file is only read; none of it being readable is no error."""
    reader = _Reader()
    sessions = events = 0
    try:
        source = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error:
        return Saved()
    with closing(source):
        target.execute("BEGIN IMMEDIATE")
        for session_id in reader.session_ids(source):
            found = _carry(reader, source, target, session_id)
            sessions, events = sessions + (found > 0), events + found
        for row in reader.rows(source, "blobs", "blob_id, data"):
            store_blobs(target, {row[0]: row[1]})
        target.execute("COMMIT")
    return Saved(sessions, events, reader.unreadable)


def _carry(reader: _Reader, source: sqlite3.Connection, target: sqlite3.Connection, session_id: str) -> int:
    rows = reader.events(source, session_id)
    first = next(rows, None)
    if first is None:
        return 0
    gaps: list[int] = []

    def history() -> Iterator[Past]:
        expected = 1
        if not isinstance(first.fact, SessionCreated):
            yield Past(first.at_ms, None, reader.session_created(source, session_id))
            gaps.append(1)
            expected = first.seq
        yield Past(first.at_ms, first.run_id, first.fact, first.body)
        for event in rows:
            expected += 1
            if event.seq != expected:
                gaps.append(expected)
                expected = event.seq
            yield Past(event.at_ms, event.run_id, event.fact, event.body)

    added = adopt(target, session_id, history())
    if gaps:
        note_damage(target, session_id, gaps[0], f"Events from {gaps[0]} on were lost when the store was damaged.")
    return added


class _Reader:
    """Reads rows one by one where reading many fails, and counts those that cannot be read."""

    def __init__(self) -> None:
        self.unreadable = 0
        self._by_session: dict[str, list[tuple[int, int]]] | None = None

    def session_ids(self, source: sqlite3.Connection) -> list[str]:
        """Sessions in the order of their first event, with the row numbers of their events remembered by seq."""
        found: dict[str, list[tuple[int, int]]] = {}
        for number, session_id, seq in self.rows(source, "events", "id, session_id, seq"):
            if isinstance(session_id, str) and isinstance(seq, int):
                found.setdefault(session_id, []).append((seq, number))
        self._by_session = {session_id: sorted(numbers) for session_id, numbers in found.items()}
        return list(found)

    def events(self, source: sqlite3.Connection, session_id: str) -> Iterator[Recorded]:
        columns = "session_id, seq, at_ms, run_id, hash, body"
        for _, number in (self._by_session or {}).get(session_id, []):
            row = self._row(source, "events", columns, number)
            if row is not None:
                try:
                    event = event_of(row)
                except (ValueError, TypeError):
                    self.unreadable += 1
                else:
                    yield event

    def session_created(self, source: sqlite3.Connection, session_id: str) -> SessionCreated:
        """The session's beginning from its row, where the event is lost."""
        try:
            statement = "SELECT workspace_uri, title, mode, model, user_id FROM sessions WHERE session_id = ?"
            row = source.execute(statement, (session_id,)).fetchone()
        except sqlite3.Error:
            row = None
        if row is None:
            return SessionCreated(workspace_uri="")
        return SessionCreated(workspace_uri=row[0], title=row[1], mode=row[2], model=row[3], user_id=row[4])

    def rows(self, source: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        number, silent = 0, 0
        last = self._last(source, table)
        while (number < last) if last is not None else (silent < GAP_MAX):
            statement = f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? AND rowid <= ?"  # noqa: S608
            try:
                rows = source.execute(statement, (number, number + STEP)).fetchall()
                found = [row[1:] for row in rows]
            except sqlite3.Error:
                one_by_one = (self._row(source, table, columns, n) for n in range(number + 1, number + STEP + 1))
                found = [row for row in one_by_one if row is not None]
            number += STEP
            silent = 0 if found else silent + STEP
            yield from found

    def _last(self, source: sqlite3.Connection, table: str) -> int | None:
        try:
            return source.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0]  # noqa: S608
        except sqlite3.Error:
            return None

    def _row(self, source: sqlite3.Connection, table: str, columns: str, number: int) -> tuple[Any, ...] | None:
        try:
            return source.execute(f"SELECT {columns} FROM {table} WHERE rowid = ?", (number,)).fetchone()  # noqa: S608
        except sqlite3.Error:
            self.unreadable += 1
            return None
