"""Examines a store, with or without a daemon, and makes its tables anew from the log (R3.3, design.md "Events").

`check` only reads. `rebuild` writes, so no daemon may run. Both answer with a plain object, for people and scripts.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from standfast.errors import StoreError
from standfast.store import chain, schema
from standfast.store.apply import apply_rows
from standfast.store.blob_uses import renote
from standfast.store.cold import forgiving, legible_event
from standfast.store.faults import store_error
from standfast.store.opening import BUSY_TIMEOUT_S, configure
from standfast.store.search import refill
from standfast.store.tables import DERIVED, KEYS
from standfast.store.thread import uri_of

T = TypeVar("T")

SHOWN_MAX = 20
"""Differences and damaged blobs that are listed; the rest is counted."""


Told = Callable[[str, int, int], None]
"""(what is looked at, how many of them are done, of how many)."""
EVERY = 500
"""Events or blobs from one telling to the next."""


class _Stopped(Exception):
    """Whoever asked is gone."""


async def check(path: Path, told: Told | None = None) -> dict[str, Any]:
    """Look at everything: pages, chains, blobs, and whether the tables are what the log says.

    `{ok, store, version, quickCheck, sessions, events, damage: [{sessionId, atSeq, reason}], damagedBlobs, differences,
    degraded: [{code, message}], kept: [path]}`; `kept`: damaged or replaced stores and backups that lie beside it.
    A big store takes minutes; `told` hears, in another thread, how far it is, and a cancelled check ends soon.
    Raises StoreError if it cannot be opened at all.
    """
    return await _in_thread(_check, path, told)


async def rebuild(path: Path, told: Told | None = None) -> dict[str, Any]:
    """Make the tables anew from the log; the report is that of `check` afterwards, with `rebuilt`: what differed before.

    A session whose beginning cannot be read keeps the row it had. Cancelled, or with StoreError, it changes nothing.
    """
    return await _in_thread(_rebuild, path, told)


async def _in_thread(work: Callable[[Path, Told], dict[str, Any]], path: Path, told: Told | None) -> dict[str, Any]:
    """A thread cannot be cancelled: it is told to stop where it says how far it is."""
    stopped = threading.Event()

    def at(what: str, done: int, total: int) -> None:
        if stopped.is_set():
            raise _Stopped
        if told is not None:
            told(what, done, total)

    working = asyncio.ensure_future(asyncio.to_thread(work, path, at))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.wait({working})
        working.exception()  # `_Stopped`, or whatever ended it: nobody asks any more
        raise


def _check(path: Path, at: Told) -> dict[str, Any]:
    if not path.exists():
        return {"ok": True, "store": str(path), "version": 0, "sessions": 0, "events": 0, "kept": _kept(path)}
    try:
        with closing(
            sqlite3.connect(uri_of(path, "mode=ro"), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        ) as c:
            c.text_factory = forgiving
            return _examine(c, path, at)
    except sqlite3.Error as error:
        raise store_error(error) from error


def _examine(connection: sqlite3.Connection, path: Path, at: Told) -> dict[str, Any]:
    version = schema.version(connection)
    report: dict[str, Any] = {"ok": False, "store": str(path), "version": version, "kept": _kept(path)}
    if version != len(schema.STEPS):
        report["quickCheck"] = f"not looked at: store version {version}, this Standfast knows {len(schema.STEPS)}"
        return report
    connection.execute("BEGIN")
    at("pages", 0, 1)
    report["quickCheck"] = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    report["events"] = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    names = [row[0] for row in connection.execute("SELECT session_id FROM sessions ORDER BY session_id")]
    report["sessions"] = len(names)
    found = ((name, chain.check(connection, name)) for name in _counted("histories", names, len(names), at, every=1))
    report["damage"] = [
        {"sessionId": name, "atSeq": damage.at_seq, "reason": damage.reason}
        for name, damage in found
        if damage is not None
    ]
    report["damagedBlobs"] = _shown(_bad_blobs(connection, at))
    report["differences"] = _shown(_differences(connection, report["events"], at))
    rows = connection.execute("SELECT code, message FROM degraded ORDER BY code")
    report["degraded"] = [{"code": code, "message": message} for code, message in rows]
    connection.execute("COMMIT")
    report["ok"] = report["quickCheck"] == "ok" and not (
        report["damage"] or report["damagedBlobs"] or report["differences"]
    )
    return report


def _kept(path: Path) -> list[str]:
    beside = [*path.parent.glob(f"{path.name}.corrupt-*"), *path.parent.glob(f"{path.name}.replaced-*")]
    return [str(name) for name in sorted([*beside, *(path.parent / "backups").glob("*.db")])]


def _shown(found: Iterator[str]) -> list[str]:
    listed: list[str] = []
    more = 0
    for one in found:
        if len(listed) < SHOWN_MAX:
            listed.append(one)
        else:
            more += 1
    return [*listed, f"and {more} more"] if more else listed


def _counted(what: str, items: Iterable[T], total: int, at: Told, *, every: int = EVERY) -> Iterator[T]:
    """The items, with word given of how many are done."""
    for number, item in enumerate(items):
        if number % every == 0:
            at(what, number, total)
        yield item


def _bad_blobs(connection: sqlite3.Connection, at: Told) -> Iterator[str]:
    total = connection.execute("SELECT count(*) FROM blobs").fetchone()[0]
    blobs = connection.execute("SELECT blob_id, data FROM blobs")
    for blob_id, data in _counted("contents", blobs, total, at):
        if sha256(data).hexdigest() != blob_id:
            yield blob_id


# -- tables against the log -------------------------------------------------------------------------------------------


def _differences(connection: sqlite3.Connection, events: int, at: Told) -> Iterator[str]:
    """Rows that the log does not give, by replaying it into a database of its own."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        schema.migrate(fresh)
        fresh.execute("BEGIN")
        _replay(connection, fresh, events, at)
        for table in DERIVED:
            yield from _compare(table, connection, fresh)


def _replay(source: sqlite3.Connection, target: sqlite3.Connection, events: int, at: Told) -> None:
    """Events in the order in which they were stored, over all sessions."""
    rows = source.execute("SELECT session_id, seq, at_ms, run_id, hash, body FROM events ORDER BY id")
    for row in _counted("events", rows, events, at):
        apply_rows(target, [legible_event(row)])


def _compare(table: str, stored: sqlite3.Connection, fresh: sqlite3.Connection) -> Iterator[str]:
    """Walk both tables by their key, side by side."""
    key = ", ".join(KEYS[table])
    statement = f'SELECT * FROM "{table}" ORDER BY {key}'  # noqa: S608 - our own names
    left, right = stored.execute(statement), fresh.execute(statement)
    columns: list[str] = [column[0] for column in left.description]
    places = [columns.index(name) for name in KEYS[table]]
    there, meant = _keyed(left, places), _keyed(right, places)
    while there is not None or meant is not None:
        if meant is None or (there is not None and there[0] < meant[0]):
            yield f"{table}: {_named(there)} is not in the log"
            there = _keyed(left, places)
        elif there is None or meant[0] < there[0]:
            yield f"{table}: {_named(meant)} is missing"
            meant = _keyed(right, places)
        else:
            differing = [name for name, a, b in zip(columns, there[1], meant[1], strict=True) if a != b]
            if differing:
                yield f"{table}: {_named(meant)} differs in {', '.join(differing)}"
            there, meant = _keyed(left, places), _keyed(right, places)


def _named(keyed: tuple[tuple[Any, ...], tuple[Any, ...]] | None) -> str:
    return " ".join(map(str, keyed[0])) if keyed else ""


def _keyed(rows: sqlite3.Cursor, places: list[int]) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """(key, row) of the next row."""
    row: tuple[Any, ...] | None = rows.fetchone()
    return None if row is None else (tuple(row[place] for place in places), row)


def _rebuild(path: Path, at: Told) -> dict[str, Any]:
    before = _check(path, at)
    if before["version"] != len(schema.STEPS):
        raise StoreError(
            "StoreReadOnly",
            f"The store has version {before['version']}. Nothing was changed. Start the daemon of that version.",
        )
    try:
        with closing(
            sqlite3.connect(uri_of(path, "mode=rw"), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        ) as c:
            configure(c)
            _make_anew(c, before["events"], at)
    except sqlite3.Error as error:
        raise store_error(error) from error
    return _check(path, at) | {"rebuilt": before["differences"]}


def _make_anew(connection: sqlite3.Connection, events: int, at: Told) -> None:
    """One transaction: a kill leaves the tables as they were."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM sessions")
        for table in DERIVED:
            connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - our own names
        _replay(connection, connection, events, at)
        connection.execute("INSERT OR IGNORE INTO sessions SELECT * FROM kept")
        refill(connection)
        renote(connection)
        at("events", events, events)  # the last moment to stop it
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
