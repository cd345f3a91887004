"""What the session layer answers with: rows joined with what only a look at the world can say. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from standfast.events.types import ChangedFile
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, SessionRow, Statistics
from standfast.store.base import Damage

WorkspaceState = Literal["present", "missing", "moved", "replaced"]


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session and the state of its folder. `candidate_uri`: where a moved folder seems to be now (never assumed)."""

    row: SessionRow
    workspace_state: WorkspaceState = "present"
    candidate_uri: str | None = None
    worktree: str | None = None
    """Name of the worktree, where the session belongs to another worktree of the asked folder's repository."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a person has to know after a crash (R9): the interrupted run and the calls whose outcome had to be checked."""

    interrupted_run: RunRow | None
    calls: list[CallRow]


WireEvent = tuple[int, str]
"""(seq, the event's JSON as clients see it): pages of history go out as they are stored, not decoded (performance.md "Replay")."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The answer to attach. Live events start after `head_seq`."""

    session: SessionView
    events: list[WireEvent]
    head_seq: int
    has_more: bool
    recovery: Recovery | None
    queue: list[MessageRow]
    queue_held: bool
    permissions: list[CallRow]
    damage: Damage | None = None


@dataclass(frozen=True, slots=True)
class StartedRun:
    run_id: str
    status: Literal["running", "queued"]
    position: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: list[RunRow]
    statistics: Statistics
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file of diff/get: whole texts; None where there is no such file on that side."""

    uri: str
    before: str | None
    after: str | None
    proposed: str | None = None


@dataclass(frozen=True, slots=True)
class ConflictView:
    """A conflict as it stands now: `current`, `merged` and the places of `hunks` are of the file as it is, unsaved text first.

    `version` is that of `current`; `found` is what stood there when the write was refused.
    """

    row: ConflictRow
    base: str | None
    current: str | None
    proposed: str | None
    merged: str | None = None
    hunks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    version: str | None = None
    found: str | None = None
    missing: bool = False
    """The file is not there now; `merged` is then what it would be if it is written again."""


@dataclass(frozen=True, slots=True)
class Undone:
    files: list[ChangedFile]
    conflicts: list[ConflictRow]
