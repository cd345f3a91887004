"""Results of the requests that a client sends: objects with the fields named (design.md "Small print")."""

from __future__ import annotations

from typing import Literal

from standfast.protocol.base import Maybe, Wire
from standfast.protocol.objects import (
    Call,
    ChangedFile,
    Conflict,
    Counters,
    Damage,
    Degraded,
    Event,
    FileDiff,
    Goal,
    HistoryMessage,
    Hunk,
    Permission,
    QueueItem,
    Recovery,
    Run,
    RunStatistics,
    Session,
    WorkspaceFile,
)


class EmptyResult(Wire, frozen=True):
    """`{}`: done."""


class SessionListResult(Wire, frozen=True):
    """By time of the last change, newest first."""

    sessions: list[Session]
    next_cursor: Maybe[str] = None


class SessionResult(Wire, frozen=True):
    """The session as it is now."""

    session: Session


class SessionAttachResult(Wire, frozen=True):
    """Live `standfast/event`s follow after `headSeq`.

    Without `afterSeq` the events are the newest page and `hasMore` says that older ones exist; with it they start at
    afterSeq + 1 and `hasMore` says that session/events has the rest up to `headSeq`.
    """

    session: Session
    events: list[Event]
    head_seq: int
    has_more: bool
    recovery: Maybe[Recovery] = None
    queue: list[QueueItem]
    queue_held: bool
    permissions: list[Permission]
    damage: Maybe[Damage] = None
    """The client's (afterSeq, afterHash) is not in this history: throw the held copy away."""


class SessionEventsResult(Wire, frozen=True):
    """A page, ascending. `hasMore`: there are more on the side that was asked for."""

    events: list[Event]
    has_more: bool


class RunStartResult(Wire, frozen=True):
    """`position`, from 0, with `queued`."""

    run_id: str
    status: Literal["running", "queued"]
    position: Maybe[int] = None


class RunResult(Wire, frozen=True):
    """The run as it is now."""

    run: Run


class RunUndoResult(Wire, frozen=True):
    """`files`: what was put back. `conflicts`: where the file is no longer what the run left."""

    files: list[ChangedFile]
    conflicts: list[Conflict]


class RunListResult(Wire, frozen=True):
    """Newest first, with statistics over all that match."""

    runs: list[Run]
    statistics: RunStatistics
    next_cursor: Maybe[str] = None


class QueueResult(Wire, frozen=True):
    """The queue as it is now. `queueHeld`: after a crash, a cancel or a failure nothing starts by itself."""

    queue: list[QueueItem]
    queue_held: bool


class RecoveryResult(Wire, frozen=True):
    """`calls` is empty where nothing is open."""

    recovery: Recovery


class CallResult(Wire, frozen=True):
    """The call as it is now."""

    call: Call


class ConflictGetResult(Wire, frozen=True):
    """Whole texts: what the model saw (`base`), what is there now (`current`), what it wanted (`proposed`).

    `merged` and the lines of `hunks` are evaluated anew against `current`, whose version is `version`.
    """

    conflict_id: str
    uri: str
    reason: str
    message: str
    hunks: list[Hunk]
    base: str | None
    current: str | None
    proposed: str | None
    merged: Maybe[str] = None
    """A clean three-way merge; offered, never applied by itself."""
    version: Maybe[str] = None


class ConflictResult(Wire, frozen=True):
    """The conflict as it is now."""

    conflict: Conflict


class DiffGetResult(Wire, frozen=True):
    """One entry a file."""

    files: list[FileDiff]


class TranscriptResult(Wire, frozen=True):
    """The session as readable Markdown; control and bidi characters are made visible."""

    text: str


class GoalResult(Wire, frozen=True):
    """Null: the session has no goal."""

    goal: Goal | None


class MessageHistoryResult(Wire, frozen=True):
    """Newest first."""

    messages: list[HistoryMessage]


class WorkspaceFilesResult(Wire, frozen=True):
    """Best match first."""

    files: list[WorkspaceFile]


class DaemonStatusResult(Wire, frozen=True):
    """What `standfast daemon status` shows. `clients`: connections without the asking one; `runs`: running ones."""

    running: Literal[True] = True
    pid: int
    socket: str
    version: str
    protocol_version: int
    store: str
    base_url: str
    clients: int
    runs: int
    sandbox: str
    degraded: list[Degraded]
    counters: Counters


class PermissionAnswer(Wire, frozen=True):
    """`digest` is the one of the request: the answer is for that content only."""

    decision: Literal["allow", "deny", "allowSession"]
    digest: str
