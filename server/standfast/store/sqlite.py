"""The embedded store: one SQLite file behind `store.base.Store` (R3). Joins writer, readers and what opening found out.

Owns no SQL of its own: reads are in `queries`, writes in `apply`, the file's fate in `opening`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from standfast.clock import Clock, Ids
from standfast.errors import StoreError
from standfast.events.encode import encode
from standfast.events.types import Recorded
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, SeenRow, SessionRow, Statistics
from standfast.store import backup, chain, queries, schema
from standfast.store.apply import append_entry, set_trusted, store_blobs
from standfast.store.base import Damage, Entry
from standfast.store.cold import pack_page
from standfast.store.copying import copy_session
from standfast.store.deleting import delete_session
from standfast.store.faults import store_error
from standfast.store.health import Ballast, Degraded, Probe, at_open, disk, log_size, not_saving
from standfast.store.opening import BUSY_TIMEOUT_S, Opening, configure, damage_marker, prepare
from standfast.store.past import Intake
from standfast.store.reader import Readers
from standfast.store.tables import CALLS, CONFLICTS, MESSAGES, RUNS, SESSIONS
from standfast.store.taking_in import drop_halves, take_in
from standfast.store.thread import Thread
from standfast.store.writer import Hooks, Writer

T = TypeVar("T")

RESCUED = frozenset({"run_finished", "tool_result", "tool_recovery", "recovery_resolved", "conflict_raised"})
"""What may use the ballast on a full disk: how things ended. Never what begins something."""

UNSAVED = frozenset({"StorageFull", "StoreBusy", "StoreReadOnly", "StoreDamaged", "StoreFailed"})
"""Reasons that concern the place, not what was to be stored."""


class SqliteStore:
    """A `Store` in one SQLite file. Make it with `open`, end it with `close`."""

    def __init__(self, path: Path, clock: Clock, opening: Opening, probe: Probe) -> None:
        self.path = path
        self._clock = clock
        self._opening = opening
        self._probe = probe
        self._read_only = opening.read_only
        self._ballast = Ballast(path.with_name(path.name + ".ballast"), probe)
        self._writer = Writer(self._connect_writer, Hooks(self._ballast.free, self._committed))
        self.counts = self._writer.counts
        self._readers = Readers([])
        self._degraded: dict[str, Degraded] = {}
        self._told: list[Callable[[list[dict[str, str]]], None]] = []
        self._loop = asyncio.get_running_loop()
        self._checking: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, *, steps: Sequence[str] = schema.STEPS, probe: Probe | None = None
    ) -> SqliteStore:
        """Open the store at `path` (absolute); makes it if it is not there, migrates it if it is older.

        One of a newer version, or on a disk that cannot be written, is open for reading: `read_only` says why, and
        writing raises StoreError (`StoreReadOnly`). A damaged one is moved away and what can be read carried over; see
        `degraded`. Raises StoreError (`StoreForeign`, `StoreUnsafe`, `StorageFull`, `StoreBusy`).
        """
        probe = probe or Probe.real()
        opening = await asyncio.to_thread(prepare, path, clock, steps)
        store = cls(path, clock, opening, probe)
        try:
            await store._start()
        except sqlite3.Error as error:
            await store.close()
            raise store_error(error) from error
        return store

    async def _start(self) -> None:
        if self._read_only is None:
            await self._writer.start()
        self._readers = await Readers.connect(self.path, query=self._opening.query, timeout_s=BUSY_TIMEOUT_S)
        found = await asyncio.to_thread(self._look)
        self._degraded = {one.code: one for one in found}
        if self._read_only is None:
            now_ms = self._clock.now_ms()
            await self._writer.submit(drop_halves, durable=True)
            await self._writer.submit(partial(_keep_degraded, found=found, now_ms=now_ms), durable=False)
        if self._opening.check_later:
            self._checking = asyncio.create_task(self._check(), name="store check")

    async def close(self) -> None:
        """Finish what was asked for, then close every connection."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)
        await self._readers.close()
        await self._writer.close()

    # -- writing ------------------------------------------------------------------------------------------------------

    async def append(self, entry: Entry) -> list[Recorded]:
        now_ms = self._clock.now_ms()
        try:
            events = [encode(entry.session_id, run_id, now_ms, fact) for run_id, fact in entry.facts]
        except ValueError as error:
            raise StoreError(
                "EventNotStorable", f"{error}. Nothing was stored. This is a fault of Standfast."
            ) from error
        return await self._write(
            partial(append_entry, entry=entry, events=events),
            durable=any(fact.durable for _, fact in entry.facts),
            rescue=all(fact.type in RESCUED for _, fact in entry.facts),
            appends=True,
        )

    async def settle(self) -> None:
        if self._read_only is None:
            await self._writer.settle()

    async def put_blob(self, data: bytes) -> str:
        blob_id = sha256(data).hexdigest()
        await self._write(partial(store_blobs, blobs={blob_id: data}), durable=False)
        return blob_id

    async def set_trusted(self, workspace_uri: str, identity: str, *, trusted: bool) -> None:
        await self._write(partial(set_trusted, uri=workspace_uri, identity=identity, trusted=trusted), durable=True)

    async def _write(
        self, function: Callable[[sqlite3.Connection], T], *, durable: bool, rescue: bool = False, appends: bool = False
    ) -> T:
        if self._read_only is not None:
            raise StoreError("StoreReadOnly", self._read_only)
        try:
            done = await self._writer.submit(function, durable=durable, rescue=rescue, appends=appends)
        except StoreError as error:
            if error.reason in UNSAVED:
                self._change_degraded("not-saving", not_saving(error))
            raise
        self._change_degraded("not-saving", None)
        return done

    async def transact(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function of `store/` (import, fork) in one durable transaction of the writer. Raises StoreError."""
        return await self._write(function, durable=True)

    async def fork(self, session_id: str, at_seq: int | None, target: str, ids: Ids) -> int:
        return await self.transact(partial(copy_session, session_id=session_id, at_seq=at_seq, target=target, ids=ids))

    async def take_in(self, intake: Intake) -> int:
        return await take_in(self._write, intake)

    async def delete(self, session_id: str) -> None:
        await self.transact(partial(delete_session, session_id=session_id))

    async def cool(self, session_id: str) -> None:
        after: int | None = 0
        while after is not None:
            after = await self._write(partial(pack_page, session_id=session_id, after_seq=after), durable=False)

    async def backup(self) -> Path:
        """Make a rotating backup beside the store; returns its path. Raises StoreError."""
        thread = await Thread.connect(self.path, query="mode=ro", timeout_s=BUSY_TIMEOUT_S)
        try:
            directory = self.path.parent / "backups"
            made = await thread.run(partial(backup.rotate, directory=directory, now_ms=self._clock.now_ms()))
        except (sqlite3.Error, OSError) as error:
            failed = store_error(error)
            self._change_degraded("no-backup", Degraded("no-backup", f"No backup could be made. {failed.message}"))
            raise failed from error
        else:
            self._change_degraded("no-backup", None)
            return made
        finally:
            await thread.close()

    async def backup_if_due(self, every_ms: int) -> Path | None:
        """A backup if the newest is older than `every_ms` and there is something to keep; its path. Raises StoreError."""
        newest = backup.newest_ms(self.path.parent / "backups")
        if self._read_only is not None or (newest is not None and self._clock.now_ms() - newest < every_ms):
            return None
        empty = await self._read(lambda c: c.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is None)
        return None if empty else await self.backup()

    # -- reading ------------------------------------------------------------------------------------------------------

    async def session(self, session_id: str) -> SessionRow | None:
        return await self._read(lambda c: queries.one(c, SESSIONS, "session_id = ?", session_id))

    async def sessions(
        self,
        *,
        workspace_uris: Sequence[str] | None = None,
        status: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 200,
    ) -> tuple[list[SessionRow], str | None]:
        return await self._read(
            partial(
                queries.sessions, workspace_uris=workspace_uris, status=status, query=query, cursor=cursor, limit=limit
            )
        )

    async def sessions_with_open_matters(self, workspace_uris: Sequence[str]) -> list[str]:
        return await self._read(lambda c: queries.sessions_with_open_matters(c, workspace_uris))

    async def copy_of(self, session_id: str, head_hash: str) -> str | None:
        """The session that is an import's copy of this history (`origin`), if there is one."""
        return await self._read(lambda c: queries.copy_of(c, session_id, head_hash))

    async def workspaces(self) -> list[tuple[str, str]]:
        statement = "SELECT DISTINCT workspace_uri, identity FROM sessions ORDER BY workspace_uri, identity"
        return await self._read(lambda c: c.execute(statement).fetchall())

    async def events(
        self,
        session_id: str,
        *,
        after_seq: int | None = None,
        before_seq: int | None = None,
        limit: int = 200,
        types: Sequence[str] | None = None,
    ) -> list[Recorded]:
        return await self._read(
            lambda c: queries.events(
                c, session_id, after_seq=after_seq, before_seq=before_seq, limit=limit, types=types
            )
        )

    async def wire_events(
        self, session_id: str, *, after_seq: int | None = None, before_seq: int | None = None, limit: int = 200
    ) -> list[tuple[int, str]]:
        return await self._read(
            lambda c: queries.wire_events(c, session_id, after_seq=after_seq, before_seq=before_seq, limit=limit)
        )

    async def event_hash(self, session_id: str, seq: int) -> str | None:
        statement = "SELECT hash FROM events WHERE session_id = ? AND seq = ?"
        return await self._read(lambda c: _first(c.execute(statement, (session_id, seq)).fetchone()))

    async def damage(self, session_id: str) -> Damage | None:
        """Checked page by page, so that other reads and the loop go on meanwhile."""
        found = await self.noted_damage(session_id)
        link: chain.Link | None = chain.Link(0, session_id)
        while link is not None and found is None:
            link, found = await self._read(partial(chain.check_page, session_id=session_id, link=link))
        return found

    async def noted_damage(self, session_id: str) -> Damage | None:
        return await self._read(lambda c: chain.recorded_damage(c, session_id))

    async def run(self, run_id: str) -> RunRow | None:
        return await self._read(lambda c: queries.one(c, RUNS, "run_id = ?", run_id))

    async def runs(
        self,
        *,
        session_id: str | None = None,
        workspace_uris: Sequence[str] | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 200,
    ) -> tuple[list[RunRow], str | None]:
        return await self._read(
            lambda c: queries.runs(
                c, session_id=session_id, workspace_uris=workspace_uris, status=status, cursor=cursor, limit=limit
            )
        )

    async def run_statistics(
        self, *, session_id: str | None = None, workspace_uris: Sequence[str] | None = None, status: str | None = None
    ) -> Statistics:
        return await self._read(
            lambda c: queries.statistics(c, session_id=session_id, workspace_uris=workspace_uris, status=status)
        )

    async def resuming_run(self, run_id: str) -> RunRow | None:
        return await self._read(lambda c: queries.resuming_run(c, run_id))

    async def unfinished_runs(self) -> list[RunRow]:
        return await self._read(queries.unfinished_runs)

    async def call(self, call_id: str) -> CallRow | None:
        return await self._read(lambda c: queries.one(c, CALLS, "call_id = ?", call_id))

    async def calls(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        pending: bool = False,
        recovery: bool = False,
        decided: bool = False,
    ) -> list[CallRow]:
        return await self._read(
            lambda c: queries.calls(
                c, run_id=run_id, session_id=session_id, pending=pending, recovery=recovery, decided=decided
            )
        )

    async def messages(
        self,
        *,
        session_id: str | None = None,
        state: str | None = None,
        query: str | None = None,
        workspace_uris: Sequence[str] | None = None,
        limit: int = 200,
    ) -> list[MessageRow]:
        return await self._read(
            lambda c: queries.messages(
                c, session_id=session_id, state=state, query=query, workspace_uris=workspace_uris, limit=limit
            )
        )

    async def message(self, session_id: str, client_message_id: str) -> MessageRow | None:
        where = "session_id = ? AND client_message_id = ?"
        return await self._read(lambda c: queries.one(c, MESSAGES, where, session_id, client_message_id))

    async def conflict(self, conflict_id: str) -> ConflictRow | None:
        return await self._read(lambda c: queries.one(c, CONFLICTS, "conflict_id = ?", conflict_id))

    async def conflicts(self, *, session_id: str | None = None, open_only: bool = True) -> list[ConflictRow]:
        return await self._read(lambda c: queries.conflicts(c, session_id=session_id, open_only=open_only))

    async def seen(self, session_id: str) -> dict[str, SeenRow]:
        return await self._read(lambda c: queries.seen(c, session_id))

    async def allowances(self, session_id: str) -> set[str]:
        statement = "SELECT allow_key FROM allowances WHERE session_id = ?"
        return await self._read(lambda c: {row[0] for row in c.execute(statement, (session_id,))})

    async def blob(self, blob_id: str) -> bytes | None:
        """Checked against its name. Raises StoreError (`StoreDamaged`) if the bytes are not those that were stored."""
        return await self._read(lambda c: queries.blob(c, blob_id))

    async def trusted(self, workspace_uri: str) -> str | None:
        """The identity that the folder was trusted with."""
        statement = "SELECT identity FROM trusted WHERE workspace_uri = ?"
        row = await self._read(lambda c: c.execute(statement, (workspace_uri,)).fetchone())
        return None if row is None else str(row[0])

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        return await self._readers.read(function)

    # -- health -------------------------------------------------------------------------------------------------------

    @property
    def read_only(self) -> str | None:
        """Why nothing can be stored, as a sentence; None if it can."""
        return self._read_only

    def degraded(self) -> list[dict[str, str]]:
        """What weakens the store now: `[{code, message}]` (I13)."""
        return [{"code": one.code, "message": one.message} for one in self._degraded.values()]

    def on_degraded(self, callback: Callable[[list[dict[str, str]]], None]) -> Callable[[], None]:
        """Call back on the loop whenever `degraded` changes; returns what ends that."""
        self._told.append(callback)
        return lambda: self._told.remove(callback)

    def _look(self) -> list[Degraded]:
        found = [*self._opening.notices, *at_open(self.path.parent, self._probe)]
        if self._read_only is not None:
            found.append(Degraded("store-read-only", self._read_only))
        else:
            self._ballast.fill()
        full = disk(self.path.parent, self._probe)
        return [*found, full] if full else found

    def _committed(self, connection: sqlite3.Connection) -> None:
        """After commits, on the writer's thread: has the disk filled up, or room again?"""
        full = disk(self.path.parent, self._probe)
        for code, found in (("disk-nearly-full", full), ("log-grows", log_size(self.path))):
            if (found is None) != (code not in self._degraded):
                self._loop.call_soon_threadsafe(self._change_degraded, code, found)
        if full is None:
            self._ballast.fill()

    def _change_degraded(self, code: str, now: Degraded | None) -> None:
        if now is None and code not in self._degraded:
            return
        before = self.degraded()
        if now is None:
            self._degraded.pop(code, None)
        else:
            self._degraded[code] = now
        if self.degraded() != before:
            for callback in list(self._told):
                callback(self.degraded())

    async def _check(self) -> None:
        """Look at every page of a large store while it is used; damage makes it read-only until the next start replaces it."""
        thread = await Thread.connect(self.path, query="mode=ro", timeout_s=BUSY_TIMEOUT_S)
        try:
            found = await thread.run(_quick_check)
        except asyncio.CancelledError:
            await thread.interrupt()
            raise
        finally:
            await thread.close()
        if found != "ok":
            await asyncio.to_thread(damage_marker(self.path).touch, 0o600)
            self._read_only = (
                f"The store is damaged ({found}). Everything readable can be read; nothing more is stored in it. Restart the "
                "daemon: it keeps the damaged file and carries what can be read into a new one."
            )
            self._change_degraded("store-damaged", Degraded("store-damaged", self._read_only))

    async def _connect_writer(self) -> Thread:
        thread = await Thread.connect(self.path, query="mode=rw", timeout_s=BUSY_TIMEOUT_S)
        try:
            await thread.run(configure)
        except BaseException:
            await thread.close()
            raise
        return thread


def _keep_degraded(connection: sqlite3.Connection, *, found: Sequence[Degraded], now_ms: int) -> None:
    """What holds for this daemon, where `doctor` finds it."""
    connection.execute("DELETE FROM degraded")
    connection.executemany("INSERT INTO degraded VALUES (?, ?, ?)", [(one.code, one.message, now_ms) for one in found])


def _quick_check(connection: sqlite3.Connection) -> str:
    try:
        return connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error)


def _first(row: Sequence[T] | None) -> T | None:
    return None if row is None else row[0]
