"""What one `emit` wants stored: the unit of atomicity between journal and store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from standfast.events.types import Fact


@dataclass(frozen=True, slots=True)
class Entry:
    """What one `emit` wants stored, all or nothing: facts of one session, in order, and the blobs they name."""

    session_id: str
    facts: Sequence[tuple[str | None, Fact]]
    """(run_id, fact) pairs."""
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """sha256 hex → bytes."""
