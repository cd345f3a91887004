"""The one writer: owns the write connection, takes what waits, and commits it together (design.md "Durability").

A job is a function that runs inside a transaction on the connection's thread. Several waiting jobs share one commit of
their strongest durability class; if that batch fails, each is tried alone, so that a bad one fails alone. Whoever waits for
a job may be cancelled: the job is done all the same. The writer also checkpoints; readers never do.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from standfast.errors import StandfastError, StoreError
from standfast.failpoints import hit
from standfast.store.counts import Counts
from standfast.store.faults import must_reopen, primary_code, store_error
from standfast.store.thread import Thread

T = TypeVar("T")

BATCH_MAX = 256
"""Jobs in one commit: bounds how long the first one waits for the last."""

CHECKPOINT_ROWS = 500
"""Changed rows after which the WAL is moved into the database, once nothing waits. (SQLite does so by itself, within a
commit, if it grows to `opening.WAL_PAGES` because something always waits.)"""

SYSTEMIC = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
"""Failures that no job is to blame for: trying each alone would only wait again."""


@dataclass(slots=True, eq=False)
class Job:
    """One function to run in a transaction. `durable`: FULL, else NORMAL. `rescue`: may use the ballast on a full disk."""

    function: Callable[[sqlite3.Connection], Any]
    durable: bool
    rescue: bool
    done: asyncio.Future[Any]
    appends: bool = False
    """Whether it is an `append`, for the failpoints around it."""


@dataclass(slots=True)
class Hooks:
    """What the store wants to be asked and told. All run on the connection's thread."""

    free_ballast: Callable[[], bool]
    """Give up the reserve; False if there is none."""
    committed: Callable[[sqlite3.Connection], None]
    """After a commit, outside any transaction."""


@dataclass(slots=True, eq=False)
class Writer:
    """Runs jobs until `close`. Make it with `start`."""

    connect: Callable[[], Awaitable[Thread]]
    hooks: Hooks
    counts: Counts = field(default_factory=Counts)
    _thread: Thread | None = None
    _waiting: deque[Job] = field(default_factory=deque[Job])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _unsettled: bool = False
    """Whether something was committed with NORMAL since the last FULL commit."""
    _checkpointed: int = 0
    """`total_changes` of the connection at the last checkpoint."""
    _changed: int = 0
    """Rows changed since."""
    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the connection and begin. Raises sqlite3.Error."""
        self._thread = await self.connect()
        self._task = asyncio.create_task(self._work(), name="store writer")

    async def submit(
        self,
        function: Callable[[sqlite3.Connection], T],
        *,
        durable: bool,
        rescue: bool = False,
        appends: bool = False,
    ) -> T:
        """Run a function in a transaction and return its result once it is as durable as asked.

        Cancelling the caller does not cancel the function. Raises StoreError, or what the function raised.
        """
        if self._closing:
            raise StoreError(
                "StoreClosed", "The store is closed. Everything stored before is safe. Start the daemon again."
            )
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)
        self._waiting.append(Job(function, durable, rescue, done, appends))
        self.counts.waiting = len(self._waiting)
        self._wake.set()
        return cast("T", await asyncio.shield(done))

    async def settle(self) -> None:
        """Return once everything committed so far is durable."""
        if self._unsettled or self._waiting:
            await self.submit(_raise_barrier, durable=True)

    async def close(self) -> None:
        """Finish what waits, then close the connection."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._thread is not None:
            await self._thread.close()
            self._thread = None

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                self.counts.waiting = len(self._waiting)
                await self._carry_out(batch)
            if self._closing:
                return

    async def _carry_out(self, batch: Sequence[Job]) -> None:
        """Commit a batch; if it fails, each job alone. Every future is answered."""
        try:
            results = await self._commit(batch)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, each caller is told and the writer lives on
            if len(batch) == 1 or primary_code(error) in SYSTEMIC:
                for job in batch:
                    job.done.set_exception(_told(error))
                return
            for job in batch:
                await self._carry_out([job])
            return
        for job, result in zip(batch, results, strict=True):
            if job.appends:
                hit("after_append")
            job.done.set_result(result)
        await self._tidy()

    async def _commit(self, batch: Sequence[Job]) -> list[Any]:
        durable = any(job.durable for job in batch)
        rescue = all(job.rescue for job in batch)
        thread = await self._connected()
        try:
            results = await thread.run(
                lambda connection: self._transaction(connection, batch, durable=durable, rescue=rescue)
            )
        except Exception as error:
            if must_reopen(error):
                await self._disconnect()
            raise
        self._unsettled = not durable
        return results

    def _transaction(
        self, connection: sqlite3.Connection, batch: Sequence[Job], *, durable: bool, rescue: bool
    ) -> list[Any]:
        """The whole transaction, in one hop; on a full disk once more with the ballast freed, if the jobs may use it."""
        try:
            results, commit_ms = _run(connection, batch, durable=durable)
        except (sqlite3.Error, OSError) as error:
            if not rescue or primary_code(error) != sqlite3.SQLITE_FULL or not self.hooks.free_ballast():
                raise
            results, commit_ms = _run(connection, batch, durable=durable)
        self.counts.committed(sum(job.appends for job in batch), commit_ms, durable=durable)
        self._changed = connection.total_changes - self._checkpointed
        with suppress(OSError):  # what was committed stays so, whatever a look at the disk says
            self.hooks.committed(connection)
        return results

    async def _tidy(self) -> None:
        """What can wait until the callers have their answers. Its failures touch nothing that was stored."""
        if self._waiting or self._thread is None or self._changed < CHECKPOINT_ROWS:
            return
        try:
            await self._thread.run(self._checkpoint)
        except (sqlite3.Error, OSError) as error:
            if must_reopen(error):
                await self._disconnect()

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        hit("in_checkpoint")
        self._checkpointed, self._changed = connection.total_changes, 0
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    async def _connected(self) -> Thread:
        if self._thread is None:
            self._thread = await self.connect()
        return self._thread

    async def _disconnect(self) -> None:
        thread, self._thread = self._thread, None
        self._checkpointed = self._changed = 0
        if thread is not None:
            try:
                await thread.close()
            except (sqlite3.Error, ValueError):
                return  # a connection that cannot even be closed is dropped all the same


def _run(connection: sqlite3.Connection, batch: Sequence[Job], *, durable: bool) -> tuple[list[Any], float]:
    """The results, and how long the commit itself took (ms)."""
    connection.execute("PRAGMA synchronous=FULL" if durable else "PRAGMA synchronous=NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        results: list[Any] = []
        for job in batch:
            if job.appends:
                hit("before_append")
            results.append(job.function(connection))
        began = time.perf_counter()
        connection.execute("COMMIT")
        commit_ms = (time.perf_counter() - began) * 1000
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return results, commit_ms


def _raise_barrier(connection: sqlite3.Connection) -> None:
    """A commit that writes nothing syncs nothing, so a number moves."""
    connection.execute("UPDATE barrier SET settled = settled + 1")


def _told(error: Exception) -> Exception:
    return error if isinstance(error, StandfastError) else store_error(error)


def _retrieve(done: asyncio.Future[Any]) -> None:
    """A caller that was cancelled does not come for its error; asyncio need not complain."""
    if not done.cancelled():
        done.exception()
