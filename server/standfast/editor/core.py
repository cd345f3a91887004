"""What every connection shares: the sessions, the journal's feed, the open buffers, facts about the daemon. Built by `daemon/`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from standfast.clock import Clock, Ids
from standfast.editor.buffers import OpenBuffers
from standfast.editor.clients import Clients
from standfast.editor.elsewhere import Choice
from standfast.editor.lsp_server import prepare
from standfast.editor.publisher import Feed, Publisher
from standfast.session.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Measured:
    """What the daemon counted since its start; what it knows of its clients is added by the front."""

    events: int = 0
    commits: int = 0
    appends: int = 0
    commit_mean_ms: float = 0.0
    """Of the commits that sync the disk."""
    commit_max_ms: float = 0.0
    writes_waiting: int = 0
    loop_lag_p99_ms: float = 0.0
    loop_lag_max_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """The daemon about itself (design.md "Daemon"); `clients` is added by the front."""

    pid: int
    socket: str
    store: str
    base_url: str
    runs: int
    measured: Measured = field(default_factory=Measured)


async def no_credentials(provider: str, key: str | None) -> None:
    """Keep no key (tests)."""


def nothing_degraded() -> list[tuple[str, str]]:
    """All is well."""
    return []


async def no_status() -> Status:
    """Nothing to say (tests)."""
    return Status(0, "", "", "", 0)


@dataclass(eq=False)
class Core:
    """One a daemon. `version` and `sandbox` are told at initialize. Clients are served within `async with core.publisher`."""

    sessions: Sessions
    feed: Feed
    clock: Clock
    ids: Ids
    version: str
    sandbox: str = "none"
    transcripts: Path | None = None
    """The state directory's place for read-only transcript files (0700), for clients without virtual documents."""
    set_credentials: Callable[[str, str | None], Awaitable[None]] = no_credentials
    degraded: Callable[[], list[tuple[str, str]]] = nothing_degraded
    """(code, sentence) pairs: what does not work as it should."""
    status: Callable[[], Awaitable[Status]] = no_status
    buffers: OpenBuffers = field(default_factory=OpenBuffers)
    """Also handed to the tools, as `files.buffers.Buffers`."""
    folder: Choice = "ask"
    """Where a session goes on whose folder is not the editor's."""
    clients: Clients = field(default_factory=Clients)
    publisher: Publisher = field(init=False)

    def __post_init__(self) -> None:
        prepare(self.version)
        self.publisher = Publisher(self.sessions, self.feed, self.clients, self.transcripts, self.folder)
