"""The store's reads, as functions of a connection. Every one goes by an index or by page; none reads events for a list."""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

import orjson

from standfast.errors import StoreError
from standfast.events.encode import recorded, wire
from standfast.events.types import Recorded
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, SeenRow, SessionRow, Spent, Statistics
from standfast.store.cold import legible
from standfast.store.search import SESSIONS_THAT_SAY, is_said, pattern
from standfast.store.tables import CALLS, CONFLICTS, MESSAGES, RUNS, SEEN, SESSIONS, USAGE, USAGE_WIRE, Table

R = TypeVar("R")

LIMIT_MAX = 1001
"""The wire's largest page, and one more: by it a reader sees that there are more."""


@dataclass
class Where:
    """Tests joined by AND, and their values."""

    tests: list[str] = field(default_factory=list[str])
    values: list[Any] = field(default_factory=list[Any])

    def add(self, test: str, *values: Any) -> None:
        self.tests.append(test)
        self.values.extend(values)

    def any_of(self, column: str, wanted: Sequence[Any] | None) -> None:
        """Nothing is asked for None; an empty list matches nothing."""
        if wanted is not None:
            self.add(f"{column} IN ({', '.join('?' * len(wanted))})", *wanted)

    @property
    def text(self) -> str:
        return " AND ".join(self.tests) or "1"


# Names in the statements below come from `tables` and from this module, never from data.


def one(connection: sqlite3.Connection, table: Table[R], where: str, *values: Any) -> R | None:
    """The first row that matches, or None."""
    found = connection.execute(f"SELECT {table.select()} FROM {table.name} WHERE {where} LIMIT 1", values).fetchone()  # noqa: S608
    return None if found is None else table.read(found)


def many(
    connection: sqlite3.Connection, table: Table[R], where: Where, order: str, *, limit: int = -1, extra: str = ""
) -> list[R]:
    """The rows that match, in order; `limit` -1: all."""
    statement = f"SELECT {table.select('t.')} FROM {table.name} t {extra} WHERE {where.text} ORDER BY {order} LIMIT ?"  # noqa: S608
    return [table.read(row) for row in connection.execute(statement, [*where.values, limit])]


def _page(limit: int) -> int:
    return max(1, min(limit, LIMIT_MAX))


# -- cursors ----------------------------------------------------------------------------------------------------------


def _cursor(*key: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode()


def _after(where: Where, columns: str, cursor: str | None) -> None:
    """Go on behind the row that the cursor names (newest first). Raises StoreError for a cursor that is not one of ours."""
    if cursor is None:
        return
    try:
        at_ms, name = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        where.add(f"({columns}) < (?, ?)", int(at_ms), str(name))
    except (ValueError, TypeError, binascii.Error) as error:
        raise StoreError(
            "CursorInvalid", "This list cannot be continued from there. Ask for its first page again."
        ) from error


# -- sessions ---------------------------------------------------------------------------------------------------------


def sessions(
    connection: sqlite3.Connection,
    *,
    workspace_uris: Sequence[str] | None,
    status: str | None,
    query: str | None,
    cursor: str | None,
    limit: int,
) -> tuple[list[SessionRow], str | None]:
    where = Where()
    where.add("t.session_id NOT IN (SELECT session_id FROM imports)")
    where.any_of("t.workspace_uri", workspace_uris)
    if status is not None:
        where.add("t.status = ?", status)
    else:
        where.add("t.status <> 'archived'")
    if query:
        part, words = like(query), pattern(query)
        said = words is not None and is_said(connection, words)
        waiting = " AND m.state = 'queued'" if said else ""  # parts of words are looked for only where no word is found
        found = [
            "t.title LIKE ? ESCAPE '\\'",
            "t.workspace_uri LIKE ? ESCAPE '\\'",
            f"t.session_id IN (SELECT m.session_id FROM messages m WHERE m.text LIKE ? ESCAPE '\\'{waiting})",  # noqa: S608
        ]
        values = [part, part, part]
        if words is not None and said:
            found.append(f"t.session_id IN ({SESSIONS_THAT_SAY})")
            values.append(words)
        where.add(f"({' OR '.join(found)})", *values)
    _after(where, "t.updated_at_ms, t.session_id", cursor)
    rows = many(connection, SESSIONS, where, "t.updated_at_ms DESC, t.session_id DESC", limit=_page(limit) + 1)
    page = rows[: _page(limit)]
    return page, _cursor(page[-1].updated_at_ms, page[-1].session_id) if len(rows) > len(page) else None


def sessions_with_open_matters(connection: sqlite3.Connection, workspace_uris: Sequence[str]) -> list[str]:
    where = Where()
    where.any_of("s.workspace_uri", workspace_uris)
    statement = f"""
        SELECT s.session_id FROM sessions s WHERE {where.text} AND (
            s.last_run_status = 'interrupted'
            OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.session_id = s.session_id AND c.uncertain = 1 AND c.dismissed = 0)
            OR EXISTS (SELECT 1 FROM tool_calls c
                       WHERE c.session_id = s.session_id AND c.result_seq IS NULL AND c.state = 'asked')
            OR EXISTS (SELECT 1 FROM conflicts k WHERE k.session_id = s.session_id AND k.state = 'open'))
        ORDER BY s.updated_at_ms DESC, s.session_id DESC"""  # noqa: S608
    return [row[0] for row in connection.execute(statement, where.values)]


def copy_of(connection: sqlite3.Connection, session_id: str, head_hash: str) -> str | None:
    """The session whose `origin` names this history."""
    found = connection.execute(
        "SELECT session_id FROM sessions WHERE origin IS NOT NULL "
        "AND json_extract(origin, '$.sessionId') = ? AND json_extract(origin, '$.headHash') = ?",
        (session_id, head_hash),
    ).fetchone()
    return None if found is None else found[0]


def like(text: str) -> str:
    """A LIKE pattern for text that contains this one."""
    for special in "\\%_":
        text = text.replace(special, "\\" + special)
    return f"%{text}%"


# -- events -----------------------------------------------------------------------------------------------------------

_EVENT = "session_id, seq, at_ms, run_id, hash, body"


def _event_page(
    connection: sqlite3.Connection,
    columns: str,
    session_id: str,
    *,
    after_seq: int | None,
    before_seq: int | None,
    limit: int,
    types: Sequence[str] | None = None,
) -> list[Any]:
    """These columns of a page, ascending. `columns` are ours, never data."""
    where = Where()
    where.add("session_id = ?", session_id)
    if after_seq is not None:
        where.add("seq > ?", after_seq)
    elif before_seq is not None:
        where.add("seq < ?", before_seq)
    where.any_of("type", types)
    order = "ASC" if after_seq is not None else "DESC"
    statement = f"SELECT {columns} FROM events WHERE {where.text} ORDER BY seq {order} LIMIT ?"  # noqa: S608
    rows = connection.execute(statement, [*where.values, _page(limit)]).fetchall()
    return rows if after_seq is not None else rows[::-1]


def event_rows(
    connection: sqlite3.Connection,
    session_id: str,
    *,
    after_seq: int | None,
    before_seq: int | None,
    limit: int,
    types: Sequence[str] | None,
) -> list[tuple[str, int, int, str | None, str, str]]:
    """Rows of a page, ascending, as they are stored."""
    rows = _event_page(
        connection, _EVENT, session_id, after_seq=after_seq, before_seq=before_seq, limit=limit, types=types
    )
    return [(*row[:-1], legible(row[0], row[1], row[2], row[-1])) for row in rows]


def events(
    connection: sqlite3.Connection,
    session_id: str,
    *,
    after_seq: int | None = None,
    before_seq: int | None = None,
    limit: int = 200,
    types: Sequence[str] | None = None,
) -> list[Recorded]:
    rows = event_rows(connection, session_id, after_seq=after_seq, before_seq=before_seq, limit=limit, types=types)
    return [recorded(*row) for row in rows]


def wire_events(
    connection: sqlite3.Connection,
    session_id: str,
    *,
    after_seq: int | None = None,
    before_seq: int | None = None,
    limit: int = 200,
) -> list[tuple[int, str]]:
    """(seq, event as clients see it), not decoded: for `attach`, `session/events` and export."""
    rows = _event_page(
        connection, "seq, at_ms, hash, body", session_id, after_seq=after_seq, before_seq=before_seq, limit=limit
    )
    return [(seq, wire(legible(session_id, seq, at_ms, body), digest)) for seq, at_ms, digest, body in rows]


# -- runs -------------------------------------------------------------------------------------------------------------


def _runs_where(session_id: str | None, workspace_uris: Sequence[str] | None, status: str | None) -> tuple[Where, str]:
    where, join = Where(), ""
    if session_id is not None:
        where.add("t.session_id = ?", session_id)
    if status is not None:
        where.add("t.status = ?", status)
    if workspace_uris is not None:
        join = "JOIN sessions s ON s.session_id = t.session_id"
        where.any_of("s.workspace_uri", workspace_uris)
    return where, join


def runs(
    connection: sqlite3.Connection,
    *,
    session_id: str | None,
    workspace_uris: Sequence[str] | None,
    status: str | None,
    cursor: str | None,
    limit: int,
) -> tuple[list[RunRow], str | None]:
    where, join = _runs_where(session_id, workspace_uris, status)
    _after(where, "t.began_at_ms, t.run_id", cursor)
    order = "t.began_at_ms DESC, t.run_id DESC"
    rows = many(connection, RUNS, where, order, limit=_page(limit) + 1, extra=join)
    page = rows[: _page(limit)]
    if len(rows) == len(page):
        return page, None
    last = page[-1]
    began = last.queued_at_ms if last.queued_at_ms is not None else last.started_at_ms or 0
    return page, _cursor(began, last.run_id)


def statistics(
    connection: sqlite3.Connection,
    *,
    session_id: str | None,
    workspace_uris: Sequence[str] | None,
    status: str | None,
) -> Statistics:
    where, join = _runs_where(session_id, workspace_uris, status)
    statement = (
        "SELECT t.status, count(*), sum(t.finished_at_ms - t.started_at_ms), count(t.finished_at_ms - t.started_at_ms), "  # noqa: S608
        f"sum(t.{USAGE[0]}), sum(t.{USAGE[1]}) FROM runs t {join} WHERE {where.text} GROUP BY t.status"
    )
    rows = connection.execute(statement, where.values).fetchall()
    ended = sum(row[3] for row in rows)
    return Statistics(
        total=sum(row[1] for row in rows),
        by_status={row[0]: row[1] for row in rows},
        mean_duration_ms=sum(row[2] or 0 for row in rows) / ended if ended else None,
        input_tokens=sum(row[4] for row in rows),
        output_tokens=sum(row[5] for row in rows),
        spent=spent(connection, session_id=session_id, workspace_uris=workspace_uris),
    )


DAYS_MAX = 400
"""Rows of `spent` that are told."""


def spent(
    connection: sqlite3.Connection, *, session_id: str | None, workspace_uris: Sequence[str] | None
) -> list[Spent]:
    """Tokens by day and model, the newest days first."""
    where, join = _runs_where(session_id, workspace_uris, None)
    sums = ", ".join(f"sum(t.{column})" for column in ("requests", *USAGE))
    statement = (
        f"SELECT t.day, t.model, {sums} FROM spent t {join} WHERE {where.text} "  # noqa: S608
        f"GROUP BY t.day, t.model ORDER BY t.day DESC, t.model LIMIT {DAYS_MAX}"
    )
    return [
        Spent(day, model, requests, dict(zip(USAGE_WIRE, counts, strict=True)))
        for day, model, requests, *counts in connection.execute(statement, where.values)
    ]


def resuming_run(connection: sqlite3.Connection, run_id: str) -> RunRow | None:
    where = Where()
    where.add("t.resumes_run_id = ?", run_id)
    return next(iter(many(connection, RUNS, where, "t.began_at_ms DESC, t.rowid DESC", limit=1)), None)


def live_runs(connection: sqlite3.Connection, session_id: str) -> list[RunRow]:
    """Those of one session that have not ended: running, or left running by a crash."""
    where = Where()
    where.add("t.session_id = ? AND t.status = 'running'", session_id)
    return many(connection, RUNS, where, "t.began_at_ms, t.run_id")


def unfinished_runs(connection: sqlite3.Connection) -> list[RunRow]:
    where = Where()
    where.add("t.status = 'running'")
    return many(connection, RUNS, where, "t.began_at_ms, t.run_id")


# -- calls, messages, conflicts, files --------------------------------------------------------------------------------


def calls(
    connection: sqlite3.Connection,
    *,
    run_id: str | None,
    session_id: str | None,
    pending: bool,
    recovery: bool,
    decided: bool = False,
) -> list[CallRow]:
    where = Where()
    if run_id is not None:
        where.add("t.run_id = ?", run_id)
    if session_id is not None:
        where.add("t.session_id = ?", session_id)
    if pending:
        where.add("t.result_seq IS NULL")
    if recovery:
        where.add("t.uncertain = 1 AND t.dismissed = 0")
    if decided:
        where.add("(t.result_status = 'denied' OR t.resolution IN ('keep', 'complete', 'undo', 'dismiss', 'stop'))")
    return many(connection, CALLS, where, "t.session_id, t.seq")


NOT_COPIED = """NOT EXISTS (SELECT 1 FROM sessions o WHERE o.session_id = t.session_id AND t.seq > 0
    AND json_extract(o.origin, '$.kind') = 'fork' AND t.seq <= json_extract(o.origin, '$.atSeq'))"""
"""Over all sessions, what the person wrote once is told once: not again for each copy of its session."""


def messages(
    connection: sqlite3.Connection,
    *,
    session_id: str | None,
    state: str | None,
    query: str | None,
    workspace_uris: Sequence[str] | None,
    limit: int,
) -> list[MessageRow]:
    where, join = Where(), ""
    if session_id is not None:
        where.add("t.session_id = ?", session_id)
    else:
        where.add(NOT_COPIED)
    if state is not None:
        where.add("t.state = ?", state)
    if query:
        where.add("t.text LIKE ? ESCAPE '\\'", like(query))
    if workspace_uris is not None:
        join = "JOIN sessions s ON s.session_id = t.session_id"
        where.any_of("s.workspace_uri", workspace_uris)
    order = "t.session_id, t.position, t.at_ms" if state == "queued" else "t.at_ms DESC, t.rowid DESC"
    return many(connection, MESSAGES, where, order, limit=_page(limit), extra=join)


def conflicts(connection: sqlite3.Connection, *, session_id: str | None, open_only: bool) -> list[ConflictRow]:
    where = Where()
    if session_id is not None:
        where.add("t.session_id = ?", session_id)
    if open_only:
        where.add("t.state = 'open'")
    return many(connection, CONFLICTS, where, "t.session_id, t.seq")


def seen(connection: sqlite3.Connection, session_id: str) -> dict[str, SeenRow]:
    where = Where()
    where.add("t.session_id = ?", session_id)
    return {row.path: row for row in many(connection, SEEN, where, "t.path")}


def blob(connection: sqlite3.Connection, blob_id: str) -> bytes | None:
    """Checked against its name. Raises StoreError (`StoreDamaged`)."""
    found = connection.execute("SELECT data FROM blobs WHERE blob_id = ?", (blob_id,)).fetchone()
    if found is not None and sha256(found[0]).hexdigest() != blob_id:
        raise StoreError(
            "StoreDamaged",
            f"Stored bytes ({blob_id[:12]}…) are not what was written. Nothing was changed. See `standfast doctor`.",
        )
    return None if found is None else found[0]
