"""Full text of what was said (R3.5): an index over messages and replies, kept within the transaction that stores them.

The index (FTS5, contentless) holds words only; the text stays in the log, under the same number. So nothing is stored twice, and
an event's words are taken out by giving its text again.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from standfast.events.types import AssistantMessage, Fact, Recorded, UserMessage
from standfast.store.cold import legible_event

TYPES = ("user_message", "assistant_message")
HITS_MAX = 5_000
"""The newest events that match; a word that is in all of a million events is not worth reading them all."""


def spoken(fact: Fact) -> str:
    """What a fact adds to the index: the person's words, or the reply's text. Empty for anything else. Pure."""
    if isinstance(fact, UserMessage):
        return "\n".join(part.text for part in fact.content)
    if isinstance(fact, AssistantMessage):
        return "\n".join(str(block.get("text", "")) for block in fact.blocks if block.get("type") == "text")
    return ""


def index(connection: sqlite3.Connection, events: Iterable[Recorded]) -> None:
    """Add stored events to the index."""
    rows = [(text, event.session_id, event.seq) for event in events if (text := spoken(event.fact))]
    connection.executemany(
        "INSERT INTO words (rowid, text) SELECT id, ? FROM events WHERE session_id = ? AND seq = ?", rows
    )


def forget(connection: sqlite3.Connection, session_id: str) -> None:
    """Take a session's events out of the index; they must still be in the log."""
    for number, text in _texts(connection, "session_id = ? AND type IN (?, ?)", session_id, *TYPES):
        connection.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (number, text))


def refill(connection: sqlite3.Connection) -> None:
    """Make the index anew from the log (`doctor --rebuild`)."""
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    for number, text in _texts(connection, "type IN (?, ?)", *TYPES):
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))


def _texts(connection: sqlite3.Connection, where: str, *values: str) -> Iterable[tuple[int, str]]:
    statement = f"SELECT id, session_id, seq, at_ms, run_id, hash, body FROM events WHERE {where} ORDER BY id"  # noqa: S608 - our own words
    for row in connection.execute(statement, values):
        if text := spoken(legible_event(row[1:]).fact):
            yield row[0], text


def pattern(query: str) -> str | None:
    """A person's words as an FTS5 query: all of them, the last as a beginning. None if there is no word in it. Pure."""
    words = re.findall(r"\w+", query)
    quoted = [f'"{word}"' for word in words]
    return " ".join([*quoted[:-1], quoted[-1] + "*"]) if quoted else None


def is_said(connection: sqlite3.Connection, words: str) -> bool:
    """Whether the pattern's words were said anywhere."""
    return connection.execute("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1", (words,)).fetchone() is not None


SESSIONS_THAT_SAY = f"""SELECT e.session_id FROM events e WHERE e.id IN
    (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT {HITS_MAX})"""  # noqa: S608 - a number of ours
"""A subquery: the sessions in which the pattern's words were said."""
