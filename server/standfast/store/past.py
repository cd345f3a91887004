"""What comes in from elsewhere (an export, another agent's file), before it has a place in our log. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from standfast.events.types import Fact

Progress = Callable[[int], Awaitable[None]]
"""Told the number of events stored so far."""


@dataclass(frozen=True, slots=True)
class Past:
    """When it happened, in which run, and what."""

    at_ms: int
    run_id: str | None
    fact: Fact
    body: str | None = None
    """Its bytes as they were stored, where they are known: kept if they fit their new place, so that no field is lost that
    only a later release knows, and an unchanged history keeps its hashes."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a history stops being what was written: `reason` is a sentence for the person."""

    at_seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Intake:
    """What comes in. `history` and `blobs` are read in a thread. `copied`: the original is here too, so that nothing open is taken
    over. `damage`: what was found wrong with it. `progress` is told the number of events stored so far."""

    session_id: str
    history: Iterator[Past]
    blobs: Iterator[tuple[str, bytes]] = field(default_factory=lambda: iter(()))
    copied: bool = False
    damage: Damage | None = None
    progress: Progress | None = None
