"""Copies a session up to one of its events (fork): the same history under new ids, with nothing open in it (design.md "Events")."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import orjson

from standfast.clock import Ids
from standfast.errors import NotAvailable, NotFound
from standfast.events.encode import decode, dump_unruly
from standfast.events.types import SessionCreated
from standfast.failpoints import hit
from standfast.store.adopt import adopt
from standfast.store.apply import head
from standfast.store.closing import close_copy
from standfast.store.past import Past
from standfast.store.queries import event_rows
from standfast.store.renaming import Renamed

PAGE = 500


def copy_session(connection: sqlite3.Connection, session_id: str, at_seq: int | None, target: str, ids: Ids) -> int:
    """Make `target` a copy of `session_id` up to `at_seq` (its newest event, if None); returns the number of events.

    Inside the writer's transaction. Raises NotFound (`SessionNotFound`), NotAvailable (`ActionNotAvailable`: no such event).
    """
    found = head(connection, session_id)
    if found is None:
        raise NotFound("SessionNotFound", f"There is no session {session_id}. Nothing was copied.")
    last = found[0] if at_seq is None else at_seq
    if not 1 <= last <= found[0]:
        raise NotAvailable(
            "ActionNotAvailable",
            f"The session has events 1 to {found[0]}; there is no event {last}. Nothing was copied.",
        )
    added = adopt(connection, target, _history(connection, session_id, last, Renamed(ids)))
    hit("in_fork")
    added += close_copy(connection, target)
    hit("in_fork")
    return added


def _history(connection: sqlite3.Connection, session_id: str, last: int, renamed: Renamed) -> Iterator[Past]:
    after = 0
    while after < last:
        rows = event_rows(
            connection, session_id, after_seq=after, before_seq=None, limit=min(PAGE, last - after), types=None
        )
        if not rows:
            return
        for _, seq, at_ms, run_id, _, body in rows:
            after = seq
            value: dict[str, Any] = renamed.rename(orjson.loads(body))
            fact = decode(dump_unruly(value))
            if isinstance(fact, SessionCreated):
                fact = fact.model_copy(update={"origin": {"kind": "fork", "sessionId": session_id, "atSeq": last}})
            yield Past(at_ms, renamed.of("runId", run_id) if run_id else None, fact)
