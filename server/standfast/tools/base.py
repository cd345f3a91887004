"""What a tool is: it says what it will touch (`plan`), does it (`run`), and can tell afterwards what became of it (`verify`).

Tools know nothing of sessions, events' journal, editors or models (R2.1, R8.2): the workspace and everything else they may
use comes in a `ToolContext`. One file a tool; `registry.py` is the list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from standfast.events.types import ChangedFile, Conflict, Fact, Intent, SeenFile, Target, Verdict
from standfast.files.buffers import Buffers

Effect = Literal["read", "edit", "command"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended. `content` goes to the model; it always says what to do next where the call was refused."""

    status: Literal["ok", "error", "denied", "cancelled"]
    content: str
    exit_code: int | None = None
    files: tuple[ChangedFile, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    reason: str | None = None
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    blob: str | None = None
    facts: tuple[Fact, ...] = ()
    """Further facts that the call is about (a plan), recorded in one transaction with the result."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call will do, before it does anything. Two plans with one `digest` show and do the same."""

    effect: Effect
    summary: str
    """One line for the permission card: outside effects first."""
    digest: str = ""
    files: tuple[ChangedFile, ...] = ()
    intents: tuple[Intent, ...] = ()
    allow_key: str | None = None
    """What `allowSession` would allow: this identical command in this directory, or edits of this file."""
    risks: tuple[str, ...] = ()
    """Sentences; any makes the call asked for in every mode (files that start programs, secrets, no undo possible)."""
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Pre-images and the like, durable together with `tool_started`."""
    sandbox: str | None = None
    """The level that the call's own command would run under, where that is not the daemon's (`ToolContext.sandbox`)."""
    state: Any = None
    """The tool's own, handed back to `run`."""


@dataclass(frozen=True, slots=True)
class StartedCall:
    """A call as the log has it: what `verify` and `settle` go by."""

    call_id: str
    operation_id: str
    args: Mapping[str, Any]
    intents: tuple[Intent, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """What the world says became of a started call. `outcome`: the real or synthesised result, for verdicts that settle."""

    verdict: Verdict
    targets: tuple[Target, ...]
    evidence: str
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a recovery action (complete, undo, stop, removeLock) led to."""

    verdict: Verdict
    message: str
    files: tuple[ChangedFile, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    targets: tuple[Target, ...] = ()


async def no_output(text: str) -> None:
    """Throw live output away."""


async def no_blob(blob_id: str) -> bytes | None:
    """Know no blob."""
    return None


async def no_result(call_id: str) -> str | None:
    """Know no call."""
    return None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and with what a call works. The workspace is an argument, never the process's directory."""

    workspace: Path
    spool: Path
    """The state directory's place for command records and spool files (0700)."""
    session_id: str
    call_id: str
    operation_id: str
    buffers: Buffers
    seen: Mapping[str, SeenFile] = field(default_factory=dict[str, SeenFile])
    """Relative path → what the model last saw of it."""
    blob: Callable[[str], Awaitable[bytes | None]] = no_blob
    output: Callable[[str], Awaitable[None]] = no_output
    """Live output, coalesced and bounded by the tool."""
    trusted: bool = False
    """The person trusts the folder: its own hooks, filters and settings may act."""
    distrusted: tuple[str, ...] = ()
    """What changed since the person trusted the folder, and takes that trust away until they give it anew."""
    sandbox: str = "none"
    """The level that confines commands: none, partial or full."""
    goal: Mapping[str, Any] | None = None
    """The session's goal (R6.3), for the tool that reports on it."""
    result: Callable[[str], Awaitable[str | None]] = no_result
    """What an earlier call of this session was answered with, by its call id."""


class Tool(Protocol):
    """One tool. `args` is already validated as `Args`; cancelling `run` ends the effect (a whole process tree) first."""

    name: str
    description: str
    effect: Effect

    @property
    def Args(self) -> type[BaseModel]:
        """The arguments' shape."""
        ...

    async def plan(self, args: Any, ctx: ToolContext) -> Plan | Outcome:
        """Look, do not touch. An Outcome: refused or failed already (nothing was or will be done)."""
        ...

    async def run(self, args: Any, plan: Plan, ctx: ToolContext) -> Outcome:
        """Do what `plan` said, and only that: where the world moved since, refuse (an Outcome with reason)."""
        ...

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """After a crash: what became of it. Reads its own targets only; the same answer however often it is asked."""
        ...

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """Carry out `complete`, `undo`, `stop` or `removeLock`. Idempotent; never runs a command again.

        Raises NotAvailable (`ActionNotAvailable`) where the action does not fit.
        """
        ...
