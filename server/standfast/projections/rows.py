"""The tables beside the log, as values: one frozen row a class, and (in `changes.py`) how each event changes them.

They answer what is asked often without reading events (R3.1, R9.3): lists, the last run, pending calls, open conflicts.
`doctor --rebuild` makes them anew from the log and must find no difference, so nothing stands here that no event says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SessionRow:
    session_id: str
    user_id: str
    workspace_uri: str
    title: str
    mode: str
    model: str
    status: str
    created_at_ms: int
    updated_at_ms: int
    identity: dict[str, Any] = field(default_factory=dict[str, Any])
    origin: dict[str, Any] | None = None
    last_run_id: str | None = None
    last_run_status: str | None = None
    queue_held: bool = False
    plan: dict[str, Any] | None = None
    goal: dict[str, Any] | None = None
    summary_seq: int = 0
    """seq of the newest `summary_created` (0: none)."""
    head_seq: int = 0
    head_hash: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    run_id: str
    session_id: str
    status: str
    """queued, running, succeeded, failed, cancelled, interrupted"""
    trigger: str = "message"
    resumes_run_id: str | None = None
    worker_id: str | None = None
    boot_id: str | None = None
    queued_at_ms: int | None = None
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    error: dict[str, Any] | None = None
    """{reason, message}"""
    usage: dict[str, Any] | None = None
    first_seq: int = 0


@dataclass(frozen=True, slots=True)
class CallRow:
    """One tool call. `state`: proposed (tool_call) → asked (permission open) → allowed → started → done (has a result)."""

    call_id: str
    session_id: str
    run_id: str
    provider_call_id: str
    tool: str
    args: dict[str, Any]
    state: str
    seq: int
    """Of its `tool_call`."""
    digest: str | None = None
    summary: str | None = None
    files: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """ChangedFile objects, of the permission until there is a result, then of the result."""
    risks: list[str] = field(default_factory=list[str])
    allow_key: str | None = None
    sandbox: str = "none"
    intents: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    operation_id: str | None = None
    result_status: str | None = None
    result_seq: int | None = None
    recovered: bool = False
    uncertain: bool = False
    """A `tool_recovery {uncertain}` was recorded."""
    verdict: str | None = None
    targets: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    evidence: str | None = None
    resolution: str | None = None
    """Last action of recovery/resolve."""
    dismissed: bool = False
    """It left `recovery` (keep, dismiss, or settled and the next run has started)."""


@dataclass(frozen=True, slots=True)
class MessageRow:
    """What the person wrote. `state`: queued, sent, removed. `position` counts from 0 among queued ones."""

    message_id: str
    session_id: str
    client_message_id: str
    run_id: str
    text: str
    state: str
    at_ms: int
    position: int = 0
    seq: int = 0
    """Of its `user_message`; 0 while it waits."""


@dataclass(frozen=True, slots=True)
class ConflictRow:
    conflict_id: str
    call_id: str
    session_id: str
    run_id: str
    uri: str
    path: str
    reason: str
    state: str
    """open or resolved"""
    detail: dict[str, Any]
    """The `conflict_raised` fact (camelCase keys)."""
    action: str | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SeenRow:
    session_id: str
    path: str
    version: str | None
    whole: bool
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model used on one day (UTC, days since 1970): `usage` has the wire's names."""

    day: int
    model: str
    requests: int
    usage: dict[str, int]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the runs that a `run/list` selects, not only of its page."""

    total: int = 0
    by_status: dict[str, int] = field(default_factory=dict[str, int])
    mean_duration_ms: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    spent: list[Spent] = field(default_factory=list[Spent])
    """By day, newest first, and model, over the sessions that were selected (whatever their runs' status); checkpoints included."""
