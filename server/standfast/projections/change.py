"""A change of the rows beside the log, as a value, and what a fold may look up. Few and plain, so that any store can do them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from standfast.events.encode import plain
from standfast.events.types import Shape

Values = Mapping[str, Any]
"""Column → value. In `where` a tuple means any of these, None means empty."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row; one with this key that is already there stays as it is (the first wins)."""

    table: str
    row: Values


@dataclass(frozen=True, slots=True)
class Put:
    """A new row that replaces one with this key (the last wins)."""

    table: str
    row: Values


@dataclass(frozen=True, slots=True)
class Update:
    """Set columns, and add to others, in the rows that match."""

    table: str
    where: Values
    values: Values
    add: Mapping[str, int] = field(default_factory=dict[str, int])


Change = Insert | Put | Update


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that waits in the queue."""

    message_id: str
    run_id: str


class State(Protocol):
    """What a fold may ask of the rows as the events before this one left them."""

    def queue(self, session_id: str) -> Sequence[Queued]:
        """The queued messages of a session, by position."""
        ...

    def message_seq(self, session_id: str, run_id: str) -> int | None:
        """seq of the first `user_message` of a run, if it came before."""
        ...


def plain_of(value: Shape | Sequence[Shape] | None) -> Any:
    """Shapes as JSON values; see `events.encode.plain`."""
    if value is None:
        return None
    if isinstance(value, Shape):
        return plain(value)
    return [plain(item) for item in value]
