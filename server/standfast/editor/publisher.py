"""Listens to the journal and tells the clients: events, streamed text, questions, progress, diagnostics, changed sessions.

The journal's callback never waits: events go out at once, everything that has to read first is done by one worker, in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, Self

from lsprotocol import types

from standfast.editor import uris
from standfast.editor import wire_views as views
from standfast.editor.attention_board import AttentionBoard
from standfast.editor.clients import Client, Clients
from standfast.editor.doing import doing
from standfast.editor.elsewhere import Choice, Elsewhere
from standfast.editor.progress import RunProgress
from standfast.editor.questions import Questions
from standfast.editor.streams import Streams
from standfast.editor.transcripts import Transcripts
from standfast.errors import NotFound, StandfastError
from standfast.events import types as facts
from standfast.events.types import Recorded
from standfast.protocol.notices import DaemonChangedNotice, SessionChangedNotice, SessionDeletedNotice
from standfast.protocol.objects import Degraded
from standfast.session.sessions import Sessions
from standfast.session.views import Attached, SessionView

log = logging.getLogger("standfast.editor")

Unsubscribe = Callable[[], None]


class Feed(Protocol):
    """The journal as its readers see it (R4.2): nothing comes that is not stored."""

    def subscribe(self, callback: Callable[[list[Recorded]], None]) -> Unsubscribe:
        """Stored events, in order for each session."""
        ...

    def subscribe_deltas(self, callback: Callable[[list[Recorded]], None]) -> Unsubscribe:
        """Streamed text at once; the same comes again as events once it is durable."""
        ...


_CHANGES_SESSION = (
    facts.SessionCreated,
    facts.SessionUpdated,
    facts.SessionRebound,
    facts.SessionArchived,
    facts.RunStarted,
    facts.RunFinished,
)
_CHANGES_ATTENTION = (
    facts.ToolRecovery,
    facts.RecoveryResolved,
    facts.ConflictRaised,
    facts.ConflictResolved,
    facts.PermissionRequested,
    facts.PermissionResolved,
    facts.RunStarted,
    facts.RunFinished,
    facts.SessionRebound,
    facts.SessionArchived,
    facts.SessionUpdated,
)


class Publisher:
    """`async with Publisher(…)` while the daemon runs. Its parts can be used by the connections."""

    def __init__(
        self, sessions: Sessions, feed: Feed, clients: Clients, transcripts: Path | None, folder: Choice = "ask"
    ) -> None:
        self._sessions = sessions
        self._feed = feed
        self._clients = clients
        self.transcripts = Transcripts(sessions, transcripts)
        self.streams = Streams(clients)
        self.board = AttentionBoard(sessions, clients, self.transcripts)
        self.questions = Questions(sessions, clients, self._spawn)
        self.progress = RunProgress(sessions, self._spawn)
        self.elsewhere = Elsewhere(sessions, folder, self._spawn)
        self._changed: dict[str, set[str]] = {}
        """Session → what is to be done for it: `session`, `attention`, `ask`."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._unsubscribe: list[Unsubscribe] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._workers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self._workers = [
            self._tasks.create_task(self._work(), name="publisher"),
            self._tasks.create_task(self.board.watch(), name="watch conflicts"),
        ]
        self._unsubscribe = [self._feed.subscribe(self._events), self._feed.subscribe_deltas(self.streams.deltas)]
        return self

    async def __aexit__(self, *error: Any) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        assert self._tasks is not None
        for worker in self._workers:
            worker.cancel()
        for client in self._clients:
            client.leave()
        await self._tasks.__aexit__(None, None, None)
        self._tasks = None

    async def settled(self) -> None:
        """Wait until everything so far is told."""
        await self._idle.wait()

    # -- what the connections tell --

    def attached(self, client: Client, found: Attached) -> None:
        """The answer to attach was sent: events follow, open questions are asked, running runs are shown."""
        row = found.session.row
        self.streams.answered(client, row.session_id, found.head_seq)
        for call in found.permissions:
            self.questions.ask(client, call)
        if row.last_run_status == "running" and row.last_run_id is not None:
            self.progress.begin(row.last_run_id, _run_title(found.session), [client])
        self._mark(row.session_id, "attention")
        self.elsewhere.look(client, found.session)

    async def opened(self, client: Client, workspace_uris: list[str]) -> None:
        """A client opened folders: what is open there is checked and shown, and a plain client is asked what is to be asked."""
        session_ids = await self.board.opened(client, workspace_uris)
        if not client.ours:
            for session_id in session_ids:
                for call in await self._sessions.open_permissions(session_id):
                    self.questions.ask(client, call)

    def deleted(self, view: SessionView) -> None:
        """A session is gone: nobody follows it any more, what was shown of it is taken off, and who may show it is told."""
        session_id = view.row.session_id
        for client in self._told_of(view):
            client.attachments.pop(session_id, None)
            if client.ours:
                client.notify("standfast/session/deleted", SessionDeletedNotice(session_id=session_id))
        self._mark(session_id, "attention")

    def left(self, client: Client) -> None:
        """A client's connection is over."""
        self.streams.left(client)
        self.board.left(client)
        self.questions.left(client)
        self.progress.left(client)

    def degraded(self, found: list[tuple[str, str]], clients: list[Client] | None = None) -> None:
        """Tell what does not work as it should: `daemon/changed`, or one message to a plain client."""
        notice = DaemonChangedNotice(degraded=[Degraded(code=code, message=message) for code, message in found])
        for client in self._clients if clients is None else clients:
            if not client.ready:
                continue
            if client.ours:
                client.notify("standfast/daemon/changed", notice)
            elif found:
                text = "\n".join(message for _, message in found)
                params = types.ShowMessageParams(types.MessageType.Warning, f"Standfast: {text}")
                client.notify_lsp(types.WINDOW_SHOW_MESSAGE, params)

    # -- what the journal tells --

    def _events(self, events: list[Recorded]) -> None:
        self.streams.events(events)
        for event in events:
            fact = event.fact
            if isinstance(fact, facts.PermissionResolved):
                self.questions.resolved(fact.call_id, fact.decision)
            elif isinstance(fact, facts.PermissionRequested):
                self._mark(event.session_id, "ask")
            elif isinstance(fact, facts.RunFinished) and event.run_id is not None:
                self.progress.end(event.run_id, fact.status)
            elif isinstance(fact, facts.ToolCall) and event.run_id is not None:
                self.progress.report(event.run_id, doing(fact.tool, fact.args))
            if isinstance(fact, _CHANGES_SESSION):
                self._mark(event.session_id, "session")
            if isinstance(fact, _CHANGES_ATTENTION):
                self._mark(event.session_id, "attention")

    def _mark(self, session_id: str, what: str) -> None:
        self._changed.setdefault(session_id, set()).add(what)
        self._idle.clear()
        self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                session_id = next(iter(self._changed))
                what = self._changed.pop(session_id)
                try:
                    await self._tell(session_id, what)
                except StandfastError as error:
                    log.warning("clients not told", extra={"session_id": session_id, "reason": error.reason})
            self._idle.set()

    async def _tell(self, session_id: str, what: set[str]) -> None:
        if "session" in what or "ask" in what:
            await self._tell_session(session_id, what)
        if "attention" in what:
            await self.board.look(session_id)

    async def _tell_session(self, session_id: str, what: set[str]) -> None:
        try:
            view = await self._sessions.get(session_id)
        except NotFound:
            return
        concerned = self._concerned(view)
        if "session" in what:
            notice = SessionChangedNotice(session=views.session(view))
            for client in self._told_of(view):
                if client.ours:
                    client.notify("standfast/session/changed", notice)
            if view.row.last_run_status == "running" and view.row.last_run_id is not None:
                self.progress.begin(view.row.last_run_id, _run_title(view), concerned)
        if "ask" in what:
            for call in await self._sessions.open_permissions(session_id):
                for client in concerned:
                    if not client.ours or session_id in client.attachments:
                        self.questions.ask(client, call)

    def _concerned(self, view: SessionView) -> list[Client]:
        """Those who follow the session or have its folder open."""
        workspace = uris.path_of(view.row.workspace_uri) or ""
        return [
            client
            for client in self._clients
            if view.row.session_id in client.attachments
            or (client.ready and any(uris.within(workspace, f) or uris.within(f, workspace) for f in client.folders))
        ]

    def _told_of(self, view: SessionView) -> list[Client]:
        """Those it concerns, and those that have no folder open: what they list is not narrowed to one (`events --follow`)."""
        return self._concerned(view) + [
            client
            for client in self._clients
            if client.ready and not client.folders and view.row.session_id not in client.attachments
        ]

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._tasks is not None, "the publisher is not running"
        return self._tasks.create_task(_guarded(work, name), name=name)


async def _guarded(work: Coroutine[Any, Any, None], name: str) -> None:
    """One client's trouble must not end the publisher."""
    try:
        await work
    except Exception as error:
        log.error("publisher task failed", exc_info=error, extra={"task": name, "error": type(error).__name__})


def _run_title(view: SessionView) -> str:
    return f"Standfast: {view.row.title or 'run'}"
