"""The facts: everything that can stand in a session's log. A released shape is never edited (R1.3, R4, design.md "Events").

A `Fact` is what a caller wants to record. The store gives it `seq`, `atMs` and `hash` and returns a `Recorded`,
whose `body` is the JSON object as stored: flat, camelCase, just as it goes over the wire. Owns shapes only.

To add an event: one class here, its rows in `projections/rows.py`, a case in the folds that need it, a golden log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel


class Shape(BaseModel, frozen=True):
    """Frozen, camelCase in JSON, snake_case in Python; unknown fields are ignored on reading (forward compatible)."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", defer_build=True
    )  # built at first use: an idle daemon has no need of them


class Fact(Shape, frozen=True):
    """One thing that happened. `durable` says whether a promise or a side effect rests on it (FULL) or not (NORMAL)."""

    durable: ClassVar[bool] = True
    type: str
    v: int = 1


# -- parts ------------------------------------------------------------------------------------------------------------


class TextContent(Shape, frozen=True):
    kind: Literal["text"] = "text"
    text: str


class ErrorInfo(Shape, frozen=True):
    reason: str
    message: str


class Usage(Shape, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class ChangedFile(Shape, frozen=True):
    """A file that a call touches or touched. `diff` is unified text for people; ids of blobs are for diff/get and undo."""

    uri: str
    kind: Literal["add", "update", "delete", "move"]
    from_uri: str | None = None
    diff: str | None = None
    before_blob: str | None = None
    after_blob: str | None = None
    before_mode: int | None = None
    """st_mode before, where there was a file: undo gives it back with the content."""


class SeenFile(Shape, frozen=True):
    """What the model now knows of a file: relative path, content version, whole or in part (R11.2). None = no such file."""

    path: str
    version: str | None
    whole: bool
    blob: str | None = None
    """The text as seen, for the three-way merge's base (stored when the file is small enough)."""


class Intent(Shape, frozen=True):
    """What a call is about to do, recorded before it does it (R4.4). Each tool owns the meaning of its kind.

    kind `file`: path, uri, change, before/after versions, inode, blobs, temp name, modes.
    kind `buffer`: uri, buffer version, text before and after as blobs.
    kind `command`: command, cwd, record directory.
    kind `git`: command, HEAD and index state before.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="allow")
    kind: str


Verdict = Literal["not_applied", "applied", "partial", "diverged", "running", "finished", "unknown"]
RecoveryStatus = Literal["uncertain", "not_applied", "applied", "partial", "diverged", "running", "finished", "unknown"]
SETTLED: frozenset[str] = frozenset({"applied", "not_applied", "finished"})
"""Verdicts that settle a call: a `tool_result {recovered: true}` follows."""


class Target(Shape, frozen=True):
    """One thing a call acts on and what became of it: a file (`uri`) or a command (`command`)."""

    uri: str | None = None
    command: str | None = None
    verdict: Verdict


# -- sessions ---------------------------------------------------------------------------------------------------------


class SessionCreated(Fact, frozen=True):
    type: Literal["session_created"] = "session_created"
    workspace_uri: str
    title: str = ""
    mode: Literal["plan", "ask", "edit", "auto"] = "ask"
    model: str = ""
    user_id: str = ""
    identity: dict[str, Any] = Field(default_factory=dict)
    """The folder's identity at binding: inode, birth time, git root commit (design.md "Workspace")."""
    origin: dict[str, Any] | None = None
    """Where an imported or forked session comes from."""


class SessionUpdated(Fact, frozen=True):
    type: Literal["session_updated"] = "session_updated"
    title: str | None = None
    status: Literal["active", "completed", "archived"] | None = None
    mode: Literal["plan", "ask", "edit", "auto"] | None = None
    model: str | None = None
    queue_held: bool | None = None


class SessionRebound(Fact, frozen=True):
    type: Literal["session_rebound"] = "session_rebound"
    workspace_uri: str
    from_uri: str
    identity: dict[str, Any] = Field(default_factory=dict)


class SessionArchived(Fact, frozen=True):
    type: Literal["session_archived"] = "session_archived"


# -- messages and the queue -------------------------------------------------------------------------------------------


class MessageQueued(Fact, frozen=True):
    type: Literal["message_queued"] = "message_queued"
    message_id: str
    client_message_id: str
    run_id: str
    content: list[TextContent]


class MessageEdited(Fact, frozen=True):
    """A queued message got another text or another place (`position` from 0)."""

    type: Literal["message_edited"] = "message_edited"
    message_id: str
    text: str | None = None
    position: int | None = None


class MessageDequeued(Fact, frozen=True):
    type: Literal["message_dequeued"] = "message_dequeued"
    message_id: str
    reason: Literal["started", "removed"]


class UserMessage(Fact, frozen=True):
    type: Literal["user_message"] = "user_message"
    message_id: str
    client_message_id: str
    content: list[TextContent]
    steer: bool = False


# -- runs -------------------------------------------------------------------------------------------------------------


class RunStarted(Fact, frozen=True):
    type: Literal["run_started"] = "run_started"
    worker_id: str
    boot_id: str
    trigger: Literal["message", "queue", "resume", "permission", "retry", "goal", "undo"]
    resumes_run_id: str | None = None


class RunFinished(Fact, frozen=True):
    type: Literal["run_finished"] = "run_finished"
    status: Literal["succeeded", "failed", "cancelled", "interrupted"]
    error: ErrorInfo | None = None
    usage: Usage = Usage()


class ModelRequest(Fact, frozen=True):
    """Stands right before each request: the context freezes here what the model is told (design.md "The model's messages")."""

    type: Literal["model_request"] = "model_request"
    attempt: int
    model: str


class AssistantChunk(Fact, frozen=True):
    durable: ClassVar[bool] = False
    type: Literal["assistant_chunk"] = "assistant_chunk"
    attempt: int
    offset: int
    """UTF-16 units of this attempt's text before this chunk."""
    text: str


class AssistantMessage(Fact, frozen=True):
    type: Literal["assistant_message"] = "assistant_message"
    blocks: list[dict[str, Any]]
    """The Messages API's own content blocks, thinking blocks byte for byte."""
    stop_reason: str | None
    usage: Usage = Usage()
    model: str | None = None
    """Which model said it; what it used is counted by model and day."""


class ModelErrorHappened(Fact, frozen=True):
    type: Literal["model_error"] = "model_error"
    attempt: int
    reason: str
    message: str = ""
    retry_after_ms: int | None = None
    """None: not tried again."""


# -- calls ------------------------------------------------------------------------------------------------------------


class ToolCall(Fact, frozen=True):
    type: Literal["tool_call"] = "tool_call"
    call_id: str
    provider_call_id: str
    tool: str
    args: dict[str, Any]


class PermissionRequested(Fact, frozen=True):
    type: Literal["permission_requested"] = "permission_requested"
    call_id: str
    digest: str
    summary: str
    files: list[ChangedFile] = Field(default_factory=list[ChangedFile])
    risks: list[str] = Field(default_factory=list[str])
    sandbox: str = "none"
    allow_key: str | None = None
    """What `allowSession` would allow."""


class PermissionResolved(Fact, frozen=True):
    type: Literal["permission_resolved"] = "permission_resolved"
    call_id: str
    decision: Literal["allow", "deny", "allowSession", "expired"]
    by: str
    digest: str = ""
    allow_key: str | None = None
    """With `allowSession`: what is allowed from now on in this session."""


class ToolStarted(Fact, frozen=True):
    """Durable before the effect (R4.4)."""

    type: Literal["tool_started"] = "tool_started"
    call_id: str
    intents: list[Intent] = Field(default_factory=list[Intent])
    operation_id: str = ""
    sandbox: str = "none"


class ToolOutput(Fact, frozen=True):
    durable: ClassVar[bool] = False
    type: Literal["tool_output"] = "tool_output"
    call_id: str
    offset: int
    text: str


class ToolResult(Fact, frozen=True):
    type: Literal["tool_result"] = "tool_result"
    call_id: str
    status: Literal["ok", "error", "denied", "cancelled"]
    content: str
    exit_code: int | None = None
    recovered: bool = False
    files: list[ChangedFile] = Field(default_factory=list[ChangedFile])
    seen: list[SeenFile] = Field(default_factory=list[SeenFile])
    blob: str | None = None
    """The whole output, where `content` was cut."""
    reason: str | None = None
    """FILE_CHANGED, FILE_NOT_READ, PATCH_CONFLICT, …"""


class ToolRecovery(Fact, frozen=True):
    type: Literal["tool_recovery"] = "tool_recovery"
    call_id: str
    status: RecoveryStatus
    targets: list[Target] = Field(default_factory=list[Target])
    evidence: str = ""


class RecoveryResolved(Fact, frozen=True):
    type: Literal["recovery_resolved"] = "recovery_resolved"
    call_id: str
    action: Literal["keep", "complete", "undo", "dismiss", "verify", "stop", "removeLock"]
    verdict: Verdict
    files: list[ChangedFile] = Field(default_factory=list[ChangedFile])
    seen: list[SeenFile] = Field(default_factory=list[SeenFile])


# -- conflicts --------------------------------------------------------------------------------------------------------


class HunkState(Shape, frozen=True):
    index: int
    state: Literal["applied", "pending", "conflict"]
    reason: str | None = None
    line: int | None = None
    candidate_lines: list[int] | None = None


class Conflict(Shape, frozen=True):
    """A refused write (R11.4): what the model saw (base), what is there (current), what it wanted (proposed)."""

    uri: str
    reason: str
    """A POLICY.md reason for patches (ambiguous, context_not_found, …), else FILE_CHANGED, FILE_NOT_READ, dirty_buffer."""
    message: str = ""
    path: str = ""
    hunks: list[HunkState] = Field(default_factory=list[HunkState])
    base_blob: str | None = None
    current_blob: str | None = None
    proposed_blob: str | None = None
    merged_blob: str | None = None
    current_version: str | None = None
    change: dict[str, Any] = Field(default_factory=dict)
    """What the call wanted for this file, in the words of `files/` (so that it can be re-evaluated later)."""


class ConflictRaised(Conflict, Fact, frozen=True):
    type: Literal["conflict_raised"] = "conflict_raised"
    conflict_id: str
    call_id: str


class ConflictResolved(Fact, frozen=True):
    type: Literal["conflict_resolved"] = "conflict_resolved"
    conflict_id: str
    action: str
    """merge, applyAt, keep, retry, dismiss, superseded"""
    files: list[ChangedFile] = Field(default_factory=list[ChangedFile])
    seen: list[SeenFile] = Field(default_factory=list[SeenFile])


# -- task state -------------------------------------------------------------------------------------------------------


class PlanStep(Shape, frozen=True):
    text: str
    status: Literal["pending", "in_progress", "completed"]


class PlanUpdated(Fact, frozen=True):
    type: Literal["plan_updated"] = "plan_updated"
    goal: str = ""
    steps: list[PlanStep]


class GoalUpdated(Fact, frozen=True):
    type: Literal["goal_updated"] = "goal_updated"
    goal: dict[str, Any] | None


class SummaryCreated(Fact, frozen=True):
    type: Literal["summary_created"] = "summary_created"
    through_seq: int
    text: str
    usage: Usage = Usage()
    model: str | None = None


class ResultsShortened(Fact, frozen=True):
    """From here on the model is told long results up to `through_seq` in one line; the log keeps them whole (R1.4)."""

    type: Literal["results_shortened"] = "results_shortened"
    through_seq: int


class UnknownFact(Fact, frozen=True):
    """An event type of a later release: kept and passed on, never dropped."""

    model_config = ConfigDict(frozen=True, extra="allow")


KnownFact = Annotated[
    SessionCreated
    | SessionUpdated
    | SessionRebound
    | SessionArchived
    | MessageQueued
    | MessageEdited
    | MessageDequeued
    | UserMessage
    | RunStarted
    | RunFinished
    | ModelRequest
    | AssistantChunk
    | AssistantMessage
    | ModelErrorHappened
    | ToolCall
    | PermissionRequested
    | PermissionResolved
    | ToolStarted
    | ToolOutput
    | ToolResult
    | ToolRecovery
    | RecoveryResolved
    | ConflictRaised
    | ConflictResolved
    | PlanUpdated
    | GoalUpdated
    | SummaryCreated
    | ResultsShortened,
    Field(discriminator="type"),
]
known_fact: TypeAdapter[KnownFact] = TypeAdapter(KnownFact, config=ConfigDict(defer_build=True))


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it stands in the log. `body` is the stored JSON object without `hash`; `wire` adds it."""

    session_id: str
    seq: int
    at_ms: int
    run_id: str | None
    hash: str
    fact: Fact
    body: str

    @property
    def wire(self) -> str:
        """The event as clients see it: the stored text with its hash spliced in, never encoded again."""
        return f'{self.body[:-1]},"hash":"{self.hash}"}}'
