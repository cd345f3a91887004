"""LSP work-done progress: runs, which it can cancel (design.md "Editor surface"), and what is taken in, by the client's own token."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lsprotocol import types

from standfast.editor.attention_view import visible
from standfast.editor.clients import Client, PeerError, PeerGone
from standfast.session.histories import Progress
from standfast.session.sessions import Sessions

OVER_KEPT = 256
"""Ended runs that are remembered, far more than can end during one look at a session."""

Spawn = Callable[[Coroutine[Any, Any, None], str], Any]


@dataclass(eq=False, slots=True)
class _Shown:
    """One client that shows a run. `begun`: it accepted the token. `ended`: how the run ended before it did."""

    client: Client
    begun: bool = False
    ended: str | None = None


class RunProgress:
    """One token a run and client. A token is the run's id with a mark of ours, so that a cancel names the run."""

    def __init__(self, sessions: Sessions, spawn: Spawn) -> None:
        self._sessions = sessions
        self._spawn = spawn
        self._shown: dict[str, list[_Shown]] = {}
        """By run."""
        self._over: deque[str] = deque(maxlen=OVER_KEPT)
        """Runs that have ended: a look at the session that was taken before must not show one as running for ever."""

    def begin(self, run_id: str, title: str, clients: list[Client]) -> None:
        """Show a run to these clients; one that shows it already keeps it."""
        if run_id in self._over:
            return
        shown = self._shown.setdefault(run_id, [])
        for client in clients:
            if client.can("window.work_done_progress") and all(one.client is not client for one in shown):
                shown.append(one := _Shown(client))
                self._spawn(self._create(one, run_id, title), f"progress of {run_id}")

    def report(self, run_id: str, message: str) -> None:
        """Say what a run does now."""
        self._notify(run_id, types.WorkDoneProgressReport(message=visible(message)))

    def end(self, run_id: str, message: str) -> None:
        """The run is over."""
        self._over.append(run_id)
        self._notify(run_id, types.WorkDoneProgressEnd(message=visible(message)))
        for one in self._shown.pop(run_id, []):
            one.ended = message

    async def cancel(self, token: Any) -> None:
        """`window/workDoneProgress/cancel`. A token that names no run of ours is nothing."""
        if isinstance(token, str) and token.startswith(_MARK) and token[len(_MARK) :] in self._shown:
            await self._sessions.run_cancel(token[len(_MARK) :])

    def left(self, client: Client) -> None:
        """The client is gone."""
        for run_id, shown in list(self._shown.items()):
            self._shown[run_id] = [one for one in shown if one.client is not client]

    async def _create(self, one: _Shown, run_id: str, title: str) -> None:
        token = _MARK + run_id
        try:
            await one.client.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(token))
        except (PeerError, PeerGone):
            return
        if one.client.gone:
            return
        one.begun = True
        _send(one.client, run_id, types.WorkDoneProgressBegin(title=visible(title), cancellable=True))
        if one.ended is not None:
            _send(one.client, run_id, types.WorkDoneProgressEnd(message=visible(one.ended)))

    def _notify(self, run_id: str, value: Any) -> None:
        for one in self._shown.get(run_id, []):
            if one.begun and not one.client.gone:
                _send(one.client, run_id, value)


_MARK = "standfast/"


def _send(client: Client, run_id: str, value: Any) -> None:
    client.notify_lsp(types.PROGRESS, types.ProgressParams(token=_MARK + run_id, value=_plain(value)))


@contextlib.asynccontextmanager
async def taking_in(client: Client, token: int | str | None, uri: str) -> AsyncGenerator[Progress | None]:
    """Tell how far an import is, if the client gave a token for it. It is cancelled by `$/cancelRequest`, not by the token."""
    if token is None:
        yield None
        return

    def tell(value: Any) -> None:
        client.notify_lsp(types.PROGRESS, types.ProgressParams(token=token, value=_plain(value)))

    async def report(events: int) -> None:
        tell(types.WorkDoneProgressReport(message=f"{events} events"))

    name = unquote(uri.rstrip("/").rpartition("/")[2])
    tell(types.WorkDoneProgressBegin(title=visible(f"Standfast: taking in {name}")))
    try:
        yield report
    finally:
        tell(types.WorkDoneProgressEnd())


def _plain(value: Any) -> dict[str, Any]:
    """A progress value as JSON: `value` of $/progress is any value to lsprotocol, so that it would not be encoded as its type."""
    found = {"kind": value.kind, "title": getattr(value, "title", None), "message": value.message}
    if isinstance(value, types.WorkDoneProgressBegin):
        found["cancellable"] = value.cancellable
    return {key: part for key, part in found.items() if part is not None}
