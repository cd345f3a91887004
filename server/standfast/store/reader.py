"""Read-only connections beside the writer's. They never checkpoint, and each read is one short transaction (F10)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from standfast.store.cold import forgiving
from standfast.store.faults import store_error
from standfast.store.thread import Thread

T = TypeVar("T")

READERS = 2
"""So that a slow read (statistics, a whole chain) does not hold up the quick ones."""


class Readers:
    """A few reading connections; each read goes to the one with the least to do."""

    def __init__(self, threads: list[Thread]) -> None:
        self._threads = threads

    @classmethod
    async def connect(cls, path: Path, *, query: str, timeout_s: float) -> Readers:
        """Open the connections. `query`: `mode=ro`, or with `immutable=1` on a disk that cannot be written."""
        threads = [await Thread.connect(path, query=query, timeout_s=timeout_s) for _ in range(READERS)]
        for thread in threads:
            await thread.run(_prepare)
        return cls(threads)

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that only reads, in one transaction. Raises StoreError."""
        thread = min(self._threads, key=lambda candidate: candidate.waiting)
        try:
            return await thread.run(lambda connection: _in_transaction(connection, function))
        except sqlite3.Error as error:
            raise store_error(error) from error

    async def close(self) -> None:
        for thread in self._threads:
            await thread.close()


def _prepare(connection: sqlite3.Connection) -> None:
    for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        "SELECT 1 FROM sqlite_schema"
    ).fetchone()  # opens the files now, while there are descriptors (F20)


def _in_transaction(connection: sqlite3.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    """One snapshot for all statements of the function."""
    connection.execute("BEGIN")
    try:
        return function(connection)
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode to UTF-8"):
            raise
        connection.text_factory = forgiving  # from now on: it takes twice as long, for each text
        return function(connection)
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")
