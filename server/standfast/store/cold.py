"""Events of archived sessions, compressed where they lie (R3.2): read as before, at about a third of the size.

A body is text while it is warm and bytes once it is cold: one byte that names the way of packing, then the packed text. The chain
is over the text, so nothing about a history changes. Packing begins with the words that every event has, since one event is short.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from standfast.events.encode import recorded
from standfast.events.types import Recorded

PAGE = 500
"""Events that one transaction packs."""

_ZLIB_1 = b"\x01"
_WORDS_1 = (
    b'"usage":{"inputTokens":"outputTokens":"cacheReadInputTokens":"cacheCreationInputTokens":0}"stopReason":"tool_use"end_turn'
    b'"content":[{"kind":"text","text":"}],"messageId":"msg_"clientMessageId":"blocks":[{"type":"text","text":"type":"tool_use"'
    b'"id":"toolu_"name":"input":{"path":"old_text":"new_text":"command":"},"callId":"call_"providerCallId":"tool":"args":{'
    b'"status":"ok","content":"intents":[{"kind":"file""beforeBlob":"afterBlob":"uri":"file:///"seen":[{"whole":true'
    b'"type":"tool_output","v":1,"offset":"type":"assistant_chunk","v":1,"attempt":1,"offset":"text":"'
    b'{"seq":1,"atMs":17,"sessionId":"ses_","runId":"run_","type":"'
)
"""What is packed with these words can only be read with them: they are never changed; another way gets another number."""


def body_of(stored: str | bytes) -> str:
    """An event's text, warm or cold. Raises ValueError for bytes that were not packed by us."""
    if isinstance(stored, str):
        return stored
    if stored[:1] != _ZLIB_1:
        raise ValueError("an event was packed in a way that this version does not know")
    try:
        return zlib.decompressobj(zdict=_WORDS_1).decompress(stored[1:]).decode()
    except zlib.error as error:
        raise ValueError("a packed event is damaged") from error


def event_of(row: Sequence[Any]) -> Recorded:
    """(session_id, seq, at_ms, run_id, hash, body) as stored, as an event. Raises ValueError for a damaged body."""
    session_id, seq, at_ms, run_id, digest, body = row
    return recorded(session_id, seq, at_ms, run_id, digest, body_of(body))


def legible(session_id: str, seq: int, at_ms: int, stored: str | bytes) -> str:
    """An event's text for reading. Where its bytes were damaged so that it is none, a line in its place that says so, so that
    the rest of the history can be read; that it is damaged, and where, the chain tells.
    """
    try:
        text = body_of(stored)
        fields = _parsed(text)
        if fields["seq"] == seq and isinstance(fields["type"], str):
            return text
    except (ValueError, RecursionError, TypeError, KeyError):
        pass
    return f'{{"seq":{seq},"atMs":{at_ms},"sessionId":"{session_id}","type":"damaged_event","v":0}}'


def legible_event(row: Sequence[Any]) -> Recorded:
    """As `event_of`, for any body: `legible` stands for a damaged one."""
    session_id, seq, at_ms, run_id, digest, body = row
    return recorded(session_id, seq, at_ms, run_id, digest, legible(session_id, seq, at_ms, body))


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)  # an event may lie deeper than orjson looks


def forgiving(text: bytes) -> str:
    """A connection's `text_factory` that reads what a flipped bit made illegible; Python's own gives up with the whole row."""
    return text.decode("utf-8", "replace")


def packed(body: str) -> bytes:
    """An event's text as cold bytes."""
    packer = zlib.compressobj(level=9, zdict=_WORDS_1)
    return _ZLIB_1 + packer.compress(body.encode()) + packer.flush()


def pack_page(connection: sqlite3.Connection, session_id: str, after_seq: int) -> int | None:
    """Pack a page of an archived session behind `after_seq`; returns where to go on, None at the end or if it is active again."""
    status = connection.execute("SELECT status FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    if status is None or status[0] != "archived":
        return None
    rows = connection.execute(
        "SELECT id, seq, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (session_id, after_seq, PAGE),
    ).fetchall()
    warm = [(packed(body), number) for number, _, body in rows if isinstance(body, str)]
    connection.executemany("UPDATE events SET body = ? WHERE id = ?", warm)
    return rows[-1][1] if len(rows) == PAGE else None
