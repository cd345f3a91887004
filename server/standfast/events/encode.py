"""Facts to the bytes that are stored and back, and the chain over those bytes. Pure; owns the log's encoding and nothing else.

A body is one flat JSON object, UTF-8, camelCase: `{"seq":…,"atMs":…,"sessionId":…,"runId":…,"type":…,"v":1,…}`.
 * `runId` is left out when an event belongs to no run. A fact that names its run itself (`message_queued`) is that run's.
 * A field is left out if it is None *and* None is what a reader fills in; where None says something (a `seen` file that
   does not exist, an unknown `stopReason`) it stays `null`. Tool arguments and the model's blocks are kept to the letter.
 * Text that is not Unicode (a lone surrogate from a model or a tool) is replaced by U+FFFD once, here, so that nothing
   downstream meets it (a38).

The chain: `hash = sha256(previous hash as ASCII hex + body)`, as hex; before the first event stands the session's id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import orjson
from pydantic import ValidationError

from standfast.events.types import Fact, Recorded, Shape, UnknownFact, known_fact

ENVELOPE = frozenset({"seq", "atMs", "sessionId", "runId", "hash"})
"""Keys that the log adds to a fact."""

NEWEST_VERSION = 1
"""`v` of the shapes in `types.py`. A higher one was written by a later release and is kept as an `UnknownFact`."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A fact ready to be stored: all but the `seq`, which only the writer knows."""

    session_id: str
    run_id: str | None
    at_ms: int
    fact: Fact
    tail: str
    """The body from `"atMs"` on."""

    def at(self, seq: int, previous: str) -> Recorded:
        """The event at its place in the log, chained to the hash before it."""
        body = f'{{"seq":{seq},{self.tail}'
        return Recorded(self.session_id, seq, self.at_ms, self.run_id, chain(previous, body), self.fact, body)


def encode(session_id: str, run_id: str | None, at_ms: int, fact: Fact) -> Encoded:
    """Encode a fact. Raises ValueError for what JSON cannot hold (cycles, endless nesting, foreign objects)."""
    fields = plain(fact)
    run_id = cast("str | None", fields.pop("runId", None)) or run_id
    envelope: dict[str, Any] = {"atMs": at_ms, "sessionId": session_id}
    if run_id is not None:
        envelope["runId"] = run_id
    envelope["type"], envelope["v"] = fields.pop("type"), fields.pop("v")
    try:
        text = orjson.dumps(envelope | fields).decode()
    except TypeError:
        text = dump_unruly(envelope | fields)
        fact = decode(text)
    return Encoded(session_id, run_id, at_ms, fact, text[1:])


def chain(previous: str, body: str) -> str:
    """The hash of an event, given that of the one before it (or the session's id, for the first)."""
    return sha256(previous.encode() + body.encode()).hexdigest()


def plain(shape: Shape) -> dict[str, Any]:
    """A shape as plain JSON values with camelCase keys, without fields that are None by default."""
    found: dict[str, Any] = {}
    for name, field in type(shape).model_fields.items():
        value = getattr(shape, name)
        if value is None and field.default is None:
            continue
        found[field.alias or name] = _plain_value(value)
    return found | (shape.model_extra or {})


def _plain_value(value: Any) -> Any:
    if isinstance(value, Shape):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in cast("list[Any]", value)]
    return value


def decode(body: str | bytes) -> Fact:
    """Read a fact from a stored body; anything this release does not know is kept as an `UnknownFact`, never refused.

    Raises ValueError if the body is not a JSON object with a `type`.
    """
    try:
        fact = known_fact.validate_json(body)
    except ValidationError:
        return _unknown(body)
    return fact if fact.v <= NEWEST_VERSION else _unknown(body)


def _unknown(body: str | bytes) -> UnknownFact:
    """A fact of a later release, or one whose bytes were damaged (the chain tells which): its fields as they stand."""
    fields: Any = json.loads(body)
    if not isinstance(fields, dict) or not isinstance(cast("dict[str, Any]", fields).get("type"), str):
        raise ValueError("not an event: a JSON object with a type is needed")
    kept = {key: value for key, value in cast("dict[str, Any]", fields).items() if key not in ENVELOPE}
    if not isinstance(kept.get("v"), int):
        kept["v"] = 0
    return UnknownFact.model_validate(kept)


def wire(body: str, digest: str) -> str:
    """The event as clients see it (`Recorded.wire`), from what is stored."""
    return f'{body[:-1]},"hash":"{digest}"}}'


def recorded(session_id: str, seq: int, at_ms: int, run_id: str | None, digest: str, body: str) -> Recorded:
    """A stored row as an event."""
    return Recorded(session_id, seq, at_ms, run_id, digest, decode(body), body)


def clean(value: Any) -> Any:
    """The value with every lone surrogate replaced by U+FFFD (pairs of them become the character they stand for)."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in cast("list[Any]", value)]
    return value


def dump_unruly(fields: dict[str, Any]) -> str:
    """What orjson refuses: lone surrogates, integers beyond 64 bits, keys that are not text, deep nesting."""
    try:
        return json.dumps(clean(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{fields.get('type')} cannot be stored as JSON: {error}") from error
