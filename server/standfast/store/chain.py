"""Whether a history is what was written: `seq` without a gap, the hash chain whole, the end where the session says it is.

SQLite's own checks do not notice a changed byte in a text or a WAL that was cut (F11, ATK-54); this does.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from standfast.events.encode import chain
from standfast.store.base import Damage
from standfast.store.cold import body_of

PAGE = 500


@dataclass(frozen=True, slots=True)
class Link:
    """How far a chain was checked: the last good event, or (0, session id) before the first."""

    seq: int
    hash: str


def recorded_damage(connection: sqlite3.Connection, session_id: str) -> Damage | None:
    """What was noted when the history was taken in damaged."""
    found = connection.execute("SELECT at_seq, reason FROM damage WHERE session_id = ?", (session_id,)).fetchone()
    return None if found is None else Damage(*found)


def check_page(connection: sqlite3.Connection, session_id: str, link: Link) -> tuple[Link | None, Damage | None]:
    """Check one page behind `link`; returns the next link (None: the end was reached) and the damage, if any was met."""
    rows = connection.execute(
        "SELECT seq, at_ms, type, hash, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (session_id, link.seq, PAGE),
    ).fetchall()
    for seq, at_ms, kind, digest, stored in rows:
        expected = link.seq + 1
        if seq != expected:
            return None, Damage(expected, f"Event {expected} is missing.")
        try:
            body = body_of(stored)
        except ValueError:
            body = ""
        if chain(link.hash, body) != digest:
            return None, Damage(seq, f"Event {seq} is not what was written.")
        start = f'{{"seq":{seq},"atMs":{at_ms},"sessionId":"{session_id}",'
        if not body.startswith(start) or f'"type":"{kind}"' not in body[: len(start) + 200]:
            return None, Damage(seq, f"Event {seq} is filed under something that it does not say.")
        link = Link(seq, digest)
    if len(rows) == PAGE:
        return link, None
    return None, _end(connection, session_id, link)


def check(connection: sqlite3.Connection, session_id: str) -> Damage | None:
    """Check a whole history in one go (`doctor`)."""
    link: Link | None = Link(0, session_id)
    damage = recorded_damage(connection, session_id)
    while link is not None and damage is None:
        link, damage = check_page(connection, session_id, link)
    return damage


def _end(connection: sqlite3.Connection, session_id: str, link: Link) -> Damage | None:
    found = connection.execute(
        "SELECT head_seq, head_hash FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if found is None or (found[0], found[1] or session_id) == (link.seq, link.hash):
        return None
    return Damage(link.seq + 1, f"The history ends at event {link.seq}, but {found[0]} were written.")
