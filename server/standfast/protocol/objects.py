"""The objects of the wire (design.md "Wire reference"): sessions, runs, queue, files, recovery, conflicts, permissions.

Ids are opaque strings, times integers in ms UTC named `…AtMs`, files URIs. `line` and `candidateLines` count from 1.
"""

from __future__ import annotations

from typing import Any, Literal

from standfast.protocol.base import Maybe, Wire

SessionMode = Literal["plan", "ask", "edit", "auto"]
SessionStatus = Literal["active", "completed", "archived"]
RunStatus = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
WorkspaceState = Literal["present", "missing", "moved", "replaced"]
Verdict = Literal["not_applied", "applied", "partial", "diverged", "running", "finished", "unknown"]
RecoveryAction = Literal["keep", "complete", "undo", "dismiss", "verify", "stop", "removeLock"]
ConflictAction = Literal["merge", "applyAt", "keep", "retry", "dismiss"]
Decision = Literal["allow", "deny", "allowSession"]
FileChange = Literal["add", "update", "delete", "move"]
AttentionCode = Literal[
    "uncertain-call",
    "partial-write",
    "diverged-file",
    "patch-conflict",
    "file-changed",
    "interrupted-run",
    "permission-needed",
    "history-damaged",
    "trust-lapsed",
]

Event = dict[str, Any]
"""One event of the log, as stored: `{seq, atMs, sessionId, runId?, type, v, hash, …}`; shapes in events.schema.json."""


class RunState(Wire, frozen=True):
    """The latest run of a session, in short."""

    run_id: str
    status: RunStatus


class Session(Wire, frozen=True):
    """A long task, bound to a folder, that can be continued many times."""

    session_id: str
    user_id: str
    workspace_uri: str
    workspace_state: WorkspaceState
    """`moved`: the folder seems to be at `candidateUri` now; `replaced`: another folder is at the old path."""
    title: str
    mode: SessionMode
    model: str
    """Empty: the user's configured one, whatever that is when a run begins."""
    status: SessionStatus
    created_at_ms: int
    updated_at_ms: int
    last_run: Maybe[RunState] = None
    candidate_uri: Maybe[str] = None
    """Where a moved folder seems to be. Offered, never assumed: `session/rebind` takes it."""
    worktree: Maybe[str] = None
    """Name of the worktree, where the session belongs to another worktree of the asked folder's repository."""


class RunError(Wire, frozen=True):
    """Why a run failed: a word for machines, a sentence for people."""

    reason: str
    message: str


class Usage(Wire, frozen=True):
    """Tokens, as the model's service counted them."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class Run(Wire, frozen=True):
    """One execution, from a message to its outcome."""

    run_id: str
    session_id: str
    status: RunStatus
    resumes_run_id: Maybe[str] = None
    started_at_ms: Maybe[int] = None
    finished_at_ms: Maybe[int] = None
    error: Maybe[RunError] = None
    usage: Maybe[Usage] = None


class Spent(Wire, frozen=True):
    """What one model used on one day. `estimatedUsd`: at the list price; absent for a model whose price is not known."""

    day_at_ms: int
    """Where the day (UTC) begins."""
    model: str
    requests: int
    usage: Usage
    estimated_usd: Maybe[float] = None


class RunStatistics(Wire, frozen=True):
    """Of all runs that a `run/list` selects, not only of its page.

    `spent`: newest days first, at most 400; of the sessions that were selected, whatever their runs' status, checkpoints included.
    """

    total: int
    by_status: dict[str, int]
    mean_duration_ms: Maybe[float] = None
    input_tokens: int
    output_tokens: int
    spent: list[Spent]


class QueueItem(Wire, frozen=True):
    """A message that waits for its run. `position` counts from 0."""

    message_id: str
    client_message_id: str
    run_id: str
    text: str
    position: int


class HistoryMessage(Wire, frozen=True):
    """What the person once wrote."""

    message_id: str
    session_id: str
    run_id: str
    text: str
    at_ms: int


class TextInput(Wire, frozen=True):
    """Text of the person."""

    kind: Literal["text"]
    text: str


class ChangedFile(Wire, frozen=True):
    """A file that a call touches. `move`: the new place in `uri`, the old in `fromUri`. `diff` is unified text."""

    uri: str
    kind: FileChange
    from_uri: Maybe[str] = None
    diff: Maybe[str] = None


class FileDiff(Wire, frozen=True):
    """Whole texts of one file; null: no such file on that side.

    Of a conflict: `before` is what the model saw, `after` what is there now, `proposed` what it wanted.
    """

    uri: str
    before: str | None
    after: str | None
    proposed: Maybe[str] = None


class Hunk(Wire, frozen=True):
    """One hunk of a refused patch."""

    index: int
    state: Literal["applied", "pending", "conflict"]
    reason: Maybe[str] = None
    line: Maybe[int] = None
    candidate_lines: Maybe[list[int]] = None


class Conflict(Wire, frozen=True):
    """A refused write, as conflict/resolve answers it. `action` is there once it is resolved."""

    conflict_id: str
    session_id: str
    call_id: str
    run_id: str
    uri: str
    reason: str
    message: str
    state: Literal["open", "resolved"]
    action: Maybe[str] = None
    hunks: list[Hunk]


class Target(Wire, frozen=True):
    """One thing a call acts on and what became of it: a file (`uri`) or a command (`command`)."""

    uri: Maybe[str] = None
    command: Maybe[str] = None
    verdict: Verdict


class Call(Wire, frozen=True):
    """A tool call whose outcome had to be checked after a crash."""

    call_id: str
    session_id: str
    run_id: str
    tool: str
    targets: list[Target]
    verdict: Verdict
    evidence: str
    resolution: Maybe[RecoveryAction] = None
    actions: list[RecoveryAction]
    """What `recovery/resolve` will take for this call as things stand."""


class Recovery(Wire, frozen=True):
    """What a person has to know after a crash."""

    interrupted_run: Maybe[Run] = None
    calls: list[Call]


class Permission(Wire, frozen=True):
    """An open question: may this call be carried out? `digest` binds the answer to what is shown here."""

    call_id: str
    session_id: str
    tool: str
    summary: str
    files: list[ChangedFile]
    digest: str
    sandbox: str
    risks: list[str]
    """Sentences that should be read first; may be empty."""


class AttentionItem(Wire, frozen=True):
    """What a person must look at, with the place where it concerns them."""

    code: AttentionCode
    session_id: str
    uri: str
    line: int
    call_id: Maybe[str] = None
    conflict_id: Maybe[str] = None
    run_id: Maybe[str] = None
    message: str


class Damage(Wire, frozen=True):
    """The history is not what was written, or not what this client saw."""

    at_seq: int
    reason: str


class Counters(Wire, frozen=True):
    """What the daemon counted since its start, for whoever looks after it. Times in milliseconds."""

    events: int
    commits: int
    appends_per_commit: float
    commit_mean_ms: float
    """Of the commits that sync the disk: mostly the disk's own time."""
    commit_max_ms: float
    writes_waiting: int
    outgoing_bytes: int
    """Not taken yet by their clients, in all."""
    outgoing_max_bytes: int
    """Of the client that is most behind."""
    loop_lag_p99_ms: float
    """How late the daemon came to what was due, in the last minutes."""
    loop_lag_max_ms: float


class Degraded(Wire, frozen=True):
    """Something of the daemon does not work as it should."""

    code: str
    message: str


class Goal(Wire, frozen=True):
    """What a session works towards, and the budget for it."""

    objective: str
    status: Literal["active", "paused", "blocked", "usage_limited", "budget_limited", "complete"]
    token_budget: Maybe[int] = None
    tokens_used: int
    time_used_seconds: float
    created_at_ms: int
    updated_at_ms: int


class WorkspaceFile(Wire, frozen=True):
    """A file for @-completion: `path` is relative to the workspace."""

    uri: str
    path: str
