"""What a run of a session is given to work with: the session's rows and the store behind plain functions (`run.runtime.Runtime`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import random

from standfast.errors import WorkspaceError
from standfast.events.types import Fact, PermissionRequested, Recorded
from standfast.projections.rows import SessionRow
from standfast.run.goal import Goal
from standfast.run.notes import Notes
from standfast.run.runtime import Answer, Runtime, Standing
from standfast.run.summary import Known
from standfast.session import permissions
from standfast.session.binding import require
from standfast.session.context_of import ContextReader
from standfast.session.known import known
from standfast.session.live import Live
from standfast.session.notes import read_notes
from standfast.session.parts import Parts
from standfast.session.superseding import superseded
from standfast.session.tooling import LiveOutput, tool_context
from standfast.session.trust import NEVER, Trust, judge, look
from standfast.session.workspace import to_path
from standfast.tools.base import ToolContext


class Folders:
    """What editors say of folders while they are open."""

    def __init__(self) -> None:
        self._trusted: dict[Path, bool] = {}
        """Folders that an editor said something of, by their real path."""
        self._open: dict[str, None] = {}

    @property
    def open(self) -> tuple[str, ...]:
        """Uris that editors opened, newest last: where a moved workspace may be now."""
        return tuple(self._open)

    def opened(self, uri: str) -> None:
        self._open.pop(uri, None)
        self._open[uri] = None

    def declare(self, uris: Sequence[str], *, trusted: bool) -> None:
        """An editor says whether it trusts these folders, with all that lies in them."""
        for uri in uris:
            with suppress(WorkspaceError):  # no local folder: no session can work there
                self._trusted[_real(uri)] = trusted

    def untrusted(self, uri: str) -> bool:
        """Whether the last word of an editor on the folder, or on the nearest one around it, was that it is not trusted."""
        if not self._trusted:
            return False  # nobody said anything: nothing to look up on the disk before each call
        place = _real(uri)
        return not next((self._trusted[one] for one in (place, *place.parents) if one in self._trusted), True)


def _real(uri: str) -> Path:
    """However the folder is spelt and whatever leads to it."""
    return Path(os.path.realpath(to_path(uri)))


async def _trust(parts: Parts, folders: Folders, row: SessionRow) -> Trust:
    """What the session's folder is worth now. The editor's word against it is stronger than the person's earlier one for it."""
    recorded = await parts.store.trusted(row.workspace_uri)
    if recorded is None or folders.untrusted(row.workspace_uri):
        return NEVER
    return judge(recorded, await asyncio.to_thread(look, to_path(row.workspace_uri)))


def surroundings(parts: Parts, folders: Folders, live: Live, session: SessionRow, run_id: str | None) -> Runtime:
    """A run's runtime. What the person may change during a run (mode, allowances, folder) is read anew at each use."""
    session_id = session.session_id
    reader = ContextReader(parts.store, session_id, frozenset(tool.name for tool in parts.offered))

    async def now() -> SessionRow:
        return await parts.store.session(session_id) or session

    async def emit(facts: Fact | Sequence[Fact], *, blobs: Mapping[str, bytes] | None = None) -> list[Recorded]:
        return await parts.journal.emit(session_id, facts, run_id=run_id, blobs=blobs)

    async def place(call_id: str, operation_id: str) -> ToolContext:
        row = await now()
        folder = await require(row, folders.open)
        output = LiveOutput(parts, session_id, run_id or "", call_id)
        worth = await _trust(parts, folders, row)
        return await tool_context(parts, row, call_id, operation_id, workspace=folder, output=output, trust=worth)

    async def standing() -> Standing:
        row = await now()
        allowed = await parts.store.allowances(session_id)
        untrusted = folders.untrusted(row.workspace_uri)
        return Standing(row.mode, frozenset(allowed), untrusted, parts.sandbox_minimum)

    async def ask(question: PermissionRequested, blobs: Mapping[str, bytes]) -> Answer:
        return await permissions.ask(live, emit, question, blobs)

    async def notes() -> Notes:
        row = await now()
        if not (await _trust(parts, folders, row)).trusted:
            return Notes()
        return await asyncio.to_thread(read_notes, to_path(row.workspace_uri))

    async def goal() -> Goal | None:
        return (await now()).goal

    async def log_knows() -> Known:
        return await known(parts.store, session_id)

    async def supersede(uris: Sequence[str]) -> list[Fact]:
        return superseded(await parts.store.conflicts(session_id=session_id), uris)

    return Runtime(
        session_id=session_id, run_id=run_id or "", model=parts.model, model_name=_model_name(parts, session),
        max_tokens=parts.max_tokens, window=parts.window, tools=parts.tools, offered=parts.offered,
        clock=parts.clock, ids=parts.ids, notes=notes, goal=goal, known=log_knows,
        emit=emit, context=reader.read, tool_context=place, standing=standing, ask=ask, superseded=supersede,
        stopped=lambda: live.stopped_by_person, sleep=asyncio.sleep, random=random, retry_base_ms=parts.retry_base_ms,
    )  # fmt: skip


def _model_name(parts: Parts, session: SessionRow) -> str:
    """Who is asked, as the log says it: the scripted model is nobody else, whatever name a session chose."""
    return "scripted" if parts.model.provider == "scripted" else session.model or parts.model_name
