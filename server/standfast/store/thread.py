"""A SQLite connection on a thread of its own, on which a whole function runs in one hop (performance.md "Append").

aiosqlite has no public way to run more than one statement per hop. It does let the caller choose the connection's class,
and hands statement and parameters on as they are: `_Whole.execute(WHOLE, [function])` runs the function on the connection's
thread, and `fetchall` gives its result. So a transaction is one function, cannot be cut in half by a cancelled caller, and
no private name of aiosqlite is used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite

T = TypeVar("T")

_WHOLE = "-- run a function"


def uri_of(path: Path, query: str) -> str:
    """The database at an absolute path as SQLite's URI, e.g. with `mode=ro`."""
    return f"{path.as_uri()}?{query}"


class _Answer:
    """What a function returned, in the clothes of a cursor."""

    def __init__(self, result: object) -> None:
        self._result = result

    def fetchall(self) -> object:
        return self._result


class _Whole(sqlite3.Connection):
    def execute(self, sql: str, parameters: Any = ()) -> Any:
        if sql is _WHOLE:
            return _Answer(parameters[0](self))
        return super().execute(sql, parameters)


class Thread:
    """One connection and its thread. Functions given to `run` are carried out one after the other."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self.waiting = 0
        """Functions that were given and are not done."""

    @classmethod
    async def connect(cls, path: Path, *, query: str, timeout_s: float) -> Thread:
        """Open `path` with the URI parameters of `query` (`mode=ro`, …). Autocommit: transactions are begun by hand.

        Raises sqlite3.Error.
        """
        connection = await aiosqlite.connect(
            uri_of(path, query),
            uri=True,
            isolation_level=None,
            timeout=timeout_s,
            factory=_Whole,
            cached_statements=256,
        )
        return cls(connection)

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function with the connection, on its thread. It runs to its end even if the caller is cancelled."""
        self.waiting += 1
        try:
            return cast("T", await self._connection.execute_fetchall(_WHOLE, [function]))
        finally:
            self.waiting -= 1

    async def interrupt(self) -> None:
        """Make the statement that is running end with an error."""
        await self._connection.interrupt()

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.close()
