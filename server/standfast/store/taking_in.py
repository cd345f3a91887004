"""Takes a history of any length in, a batch a transaction, so that other sessions go on being stored meanwhile (R3.4, R3.6).

Until the last batch is stored the session is marked as half (`imports`): it is in no list, and a daemon that finds the mark at its
start removes what is there. So after a kill the history is here whole, or not at all. Memory is bounded by a batch.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from standfast.failpoints import hit
from standfast.store.adopt import adopt, note_damage
from standfast.store.apply import store_blobs
from standfast.store.closing import close_copy
from standfast.store.deleting import delete_session
from standfast.store.past import Intake, Past

T = TypeVar("T")
BATCH = 500
BLOBS = 20


class Write(Protocol):
    """The store's writer: a function in a transaction."""

    async def __call__(self, function: Callable[[sqlite3.Connection], T], *, durable: bool) -> T: ...


async def take_in(write: Write, intake: Intake) -> int:
    """Returns the number of events. Raises what `history` raises (nothing is left then), StoreError. Cancelling leaves nothing."""
    added = 0
    begun = False
    try:
        while blobs := await asyncio.to_thread(_some, intake.blobs, BLOBS):
            await write(partial(store_blobs, blobs=dict(blobs)), durable=False)
        while batch := await asyncio.to_thread(_some, intake.history, BATCH):
            step, begun = _go_on if begun else _begin, True  # also a write whose caller was cancelled is carried out
            added += await write(partial(step, intake=intake, batch=batch), durable=False)
            hit("in_import")
            if intake.progress is not None:
                await intake.progress(added)
        return added + await write(partial(_finish, intake=intake), durable=True)
    except BaseException:
        if begun:
            await asyncio.shield(write(partial(_give_up, session_id=intake.session_id), durable=True))
        raise


def drop_halves(connection: sqlite3.Connection) -> None:
    """Remove what a killed import left (at the start of the daemon)."""
    for (session_id,) in connection.execute("SELECT session_id FROM imports").fetchall():
        _give_up(connection, session_id)


def _some(items: Iterator[T], size: int) -> Sequence[T]:
    return list(islice(items, size))


def _begin(connection: sqlite3.Connection, *, intake: Intake, batch: Sequence[Past]) -> int:
    connection.execute("INSERT INTO imports VALUES (?)", (intake.session_id,))
    return adopt(connection, intake.session_id, batch)


def _go_on(connection: sqlite3.Connection, *, intake: Intake, batch: Sequence[Past]) -> int:
    return adopt(connection, intake.session_id, batch)


def _finish(connection: sqlite3.Connection, *, intake: Intake) -> int:
    if intake.damage is not None:
        note_damage(connection, intake.session_id, intake.damage.at_seq, intake.damage.reason)
    added = close_copy(connection, intake.session_id) if intake.copied else 0
    connection.execute("DELETE FROM imports WHERE session_id = ?", (intake.session_id,))
    return added


def _give_up(connection: sqlite3.Connection, session_id: str) -> None:
    found: Any = connection.execute("SELECT 1 FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    if found is not None:
        delete_session(connection, session_id)
    connection.execute("DELETE FROM imports WHERE session_id = ?", (session_id,))
