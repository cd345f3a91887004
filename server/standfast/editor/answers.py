"""What a handler gives back: JSON, and what is to happen right after it was sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from standfast.protocol.base import Wire, wire_json


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result as JSON. `then` runs once the answer is in the outbox, before anything else of this client is sent."""

    result: bytes
    then: Callable[[], None] = nothing


def answer(value: Wire) -> Answer:
    """A payload as an answer."""
    return Answer(wire_json(value))


def with_events(value: Wire, events: Sequence[tuple[int, str]]) -> bytes:
    """JSON of a result whose `events`, (seq, JSON), are spliced in as they are stored, never encoded again (performance.md "Replay").

    `value.events` must be the empty list: its place is found by name.
    """
    body = wire_json(value)
    empty = b'"events":[]'
    at = body.index(empty) + len(empty) - 1
    return b"%b%b%b" % (body[:at], ",".join([text for _, text in events]).encode(), body[at:])
