"""What other agents' files say, in words that all of them share. Values only; each reader yields these, `retell` makes facts of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from standfast.events.types import ChangedFile, Fact, PlanStep, Usage

Json = Mapping[str, Any]
NOT_COUNTED = Usage()


@dataclass(frozen=True, slots=True)
class Began:
    """What the file says of its session. `folder`: an absolute path."""

    at_ms: int
    program: str
    session_id: str
    folder: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """The person's words: they begin a run, unless one that just began has none yet."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the other agent named it. `args` are its own."""

    use_id: str
    name: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replied:
    """A piece of a reply; pieces that follow one another are one reply."""

    at_ms: int
    text: str = ""
    calls: Sequence[Call] = ()
    usage: Usage = NOT_COUNTED
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A call's result. `lost`: the program itself wrote that it does not know what became of the call."""

    at_ms: int
    use_id: str
    text: str
    status: Literal["ok", "error", "denied"] = "ok"
    exit_code: int | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """Files that a call changed, told apart from its result."""

    use_id: str
    files: Sequence[ChangedFile]


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn came to its end."""

    at_ms: int
    status: Literal["succeeded", "cancelled", "failed"] = "succeeded"


@dataclass(frozen=True, slots=True)
class Summed:
    """The program's own summary of everything so far."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that is in force from now on."""

    at_ms: int
    steps: Sequence[PlanStep]
    goal: str = ""


Item = Began | Said | Replied | Answered | Changed | Ended | Summed | Planned


@dataclass(frozen=True, slots=True)
class Happened:
    """A fact with its time and run, ready to be given a place in a log."""

    at_ms: int
    run_id: str | None
    fact: Fact


class Reader(Protocol):
    """One program's format: its records, in the file's order, as items. Pure; never raises for a strange record."""

    def __call__(self, records: Iterable[Json]) -> Iterator[Item]: ...
