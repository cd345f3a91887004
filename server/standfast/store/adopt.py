"""Takes histories in from elsewhere (export, salvage, other agents): numbers and chains their events anew.

Bounded: a history of any length is taken in batches, within one transaction that the caller began.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import islice

from standfast.events.encode import chain, encode
from standfast.events.types import Recorded
from standfast.store.apply import head, store_events
from standfast.store.past import Past

BATCH = 500


def adopt(connection: sqlite3.Connection, session_id: str, history: Iterable[Past]) -> int:
    """Append a history to a session (a new one begins with `session_created`); returns how many events were added."""
    found = head(connection, session_id)
    seq, digest = found if found is not None else (0, session_id)
    added = 0
    events = iter(history)
    while batch := list(islice(events, BATCH)):
        chained: list[Recorded] = []
        for past in batch:
            event = _placed(session_id, past, seq + 1, digest)
            seq, digest = event.seq, event.hash
            chained.append(event)
        store_events(connection, chained)
        added += len(chained)
    return added


def _placed(session_id: str, past: Past, seq: int, previous: str) -> Recorded:
    start = f'{{"seq":{seq},"atMs":{past.at_ms},"sessionId":"{session_id}",'
    if past.body is not None and past.body.startswith(start):
        digest = chain(previous, past.body)
        return Recorded(session_id, seq, past.at_ms, past.run_id, digest, past.fact, past.body)
    return encode(session_id, past.run_id, past.at_ms, past.fact).at(seq, previous)


def note_damage(connection: sqlite3.Connection, session_id: str, at_seq: int, reason: str) -> None:
    """Remember that a history was not whole when it was taken in; the first place holds."""
    connection.execute("INSERT OR IGNORE INTO damage VALUES (?, ?, ?)", (session_id, at_seq, reason))
