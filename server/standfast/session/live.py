"""What lives only in this process: one record a session, with its lock, its running run and the questions that wait for a person.

Nothing here is a fact; all of it can be lost in a crash (R14: the only copy is never in the cache).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

from standfast.errors import Busy
from standfast.events.types import Fact
from standfast.run.runtime import Answer


@dataclass(slots=True)
class Question:
    """An open permission of a live run."""

    digest: str
    answer: asyncio.Future[Answer]


@dataclass(slots=True)
class Live:
    """`turn` orders what starts, ends or queues runs; `checking` keeps two clients from verifying the same calls at once."""

    session_id: str
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    run_id: str | None = None
    task: asyncio.Task[None] | None = None
    stopped_by_person: bool = False
    pursuing: bool = False
    """A turn towards the goal starts after the pause."""
    compacting: asyncio.Task[None] | None = None
    """A checkpoint that the person asked for is being made."""
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    watched: set[str] = field(default_factory=set[str])
    """Calls whose running commands are waited for."""
    owed: list[tuple[str | None, Fact]] = field(default_factory=list[tuple[str | None, Fact]])
    """The end of a run that the store could not take yet (`owing`)."""


@contextlib.asynccontextmanager
async def idle(live: Live, done: str) -> AsyncGenerator[None]:
    """Hold the session's turn while no run goes on. `done`: what was not done otherwise. Raises SessionBusy."""
    async with live.turn:
        if live.run_id is not None:
            raise Busy(
                "SessionBusy", f"A run is going on in this session. It was not {done}. Stop it or wait for its end."
            )
        yield


class LiveSessions:
    """The records, made on demand."""

    def __init__(self) -> None:
        self._all: dict[str, Live] = {}

    def of(self, session_id: str) -> Live:
        return self._all.setdefault(session_id, Live(session_id))

    def running(self) -> Iterator[Live]:
        return (live for live in self._all.values() if live.run_id is not None)

    def by_run(self, run_id: str) -> Live | None:
        return next((live for live in self._all.values() if live.run_id == run_id), None)

    def pursuing(self) -> bool:
        return any(live.pursuing for live in self._all.values())

    def watching(self) -> bool:
        return any(live.watched for live in self._all.values())

    def forget(self, session_id: str) -> None:
        self._all.pop(session_id, None)
