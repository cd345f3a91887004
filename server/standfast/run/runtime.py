"""What a run works with: values and functions handed in by the session, so that the loop knows no store, bus or editor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from standfast.clock import Clock, Ids
from standfast.events.types import Fact, PermissionRequested, Recorded
from standfast.model.base import Model
from standfast.run.context import Context
from standfast.run.goal import Goal
from standfast.run.notes import Notes
from standfast.run.summary import Known
from standfast.tools.base import Tool, ToolContext


class Emit(Protocol):
    """`journal.emit`, bound to the session and the run."""

    async def __call__(
        self, facts: Fact | Sequence[Fact], *, blobs: Mapping[str, bytes] | None = None
    ) -> list[Recorded]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a permission. `digest`: what it was given for."""

    decision: str
    digest: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds in the session just now; read anew for each call, since the person may change it during a run."""

    mode: str
    allowed: frozenset[str]
    untrusted: bool
    minimum: str = "none"
    """The sandbox level below which every command is asked."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One run's surroundings."""

    session_id: str
    run_id: str
    model: Model
    model_name: str
    max_tokens: int
    window: int
    """Tokens that the model takes in one request, reply included."""
    tools: Mapping[str, Tool]
    """All tools by name; those with `offered` are told to the model."""
    offered: Sequence[Tool]
    clock: Clock
    ids: Ids
    emit: Emit
    context: Callable[[], Awaitable[Context]]
    """The fold over everything stored so far."""
    tool_context: Callable[[str, str], Awaitable[ToolContext]]
    """(call_id, operation_id) → where the call works. Raises WorkspaceError where the folder is gone."""
    standing: Callable[[], Awaitable[Standing]]
    ask: Callable[[PermissionRequested, Mapping[str, bytes]], Awaitable[Answer]]
    """Record the question (with its blobs) and wait for the person's answer, over editors coming and going."""
    notes: Callable[[], Awaitable[Notes]]
    """What the project says to agents; nothing where the folder is not trusted."""
    goal: Callable[[], Awaitable[Goal | None]]
    known: Callable[[], Awaitable[Known]]
    """What the log knows of files, uncertain calls and decisions, for a checkpoint."""
    superseded: Callable[[Sequence[str]], Awaitable[list[Fact]]]
    """Conflicts on these uris that a successful write supersedes, as facts."""
    stopped: Callable[[], bool]
    """Whether it was the person who stopped the run (and not the daemon that ends)."""
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    """0 ≤ x < 1, for the jitter of retries."""
    retry_base_ms: int = 500
    """The first pause before another try; it doubles from there."""
