"""What the session layer is built from. One value, made by the composition root, passed to each of its modules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standfast.clock import Clock, Ids
from standfast.events.journal import Journal
from standfast.events.types import Conflict
from standfast.files.buffers import Buffers
from standfast.model.base import Model
from standfast.store.base import Store
from standfast.tools.base import StartedCall, Tool, ToolContext, Verification
from standfast.tools.reconsider import Reconsidered

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Start a task in the daemon's task group, by name; it must not raise."""


@dataclass(frozen=True, slots=True)
class Parts:
    store: Store
    journal: Journal
    model: Model
    model_name: str
    max_tokens: int
    window: int
    """Tokens that the model takes in one request, reply included."""
    tools: Mapping[str, Tool]
    offered: Sequence[Tool]
    """What the model is told of; `undo` and `resolve_conflict` are not."""
    buffers: Buffers
    clock: Clock
    ids: Ids
    spawn: Spawn
    spool: Path
    worker_id: str
    boot_id: str
    user_id: str
    sandbox: str = "none"
    """The level that confines commands here."""
    sandbox_minimum: str = "none"
    """The person's: below it every command is asked."""
    goal_pause_s: float = 2.0
    """Between a turn that a goal started and the next."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds."""
    retry_base_ms: int = 500
    """The first pause before the model is asked again."""
    wait: Callable[[StartedCall, ToolContext], Awaitable[Verification]] | None = None
    """Wait for the end of a command that still runs (supplied by `process/`'s owner, R8.2)."""
    reconsider: Callable[[Conflict, ToolContext], Awaitable[Reconsidered]] | None = None
    """A conflict as it stands to the file as it is now (supplied by `tools/`)."""
    list_files: Callable[[Path, str, int], Awaitable[list[str]]] | None = None
    """(root, query, limit) → relative paths for @-completion."""
