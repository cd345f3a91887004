"""Open permissions, asked of every client until one answers (design.md "Wire", `standfast/permission/request`).

An error is no answer, nor is a dialog that was closed: the question stays, and is asked again of whoever attaches next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from lsprotocol import types
from pydantic import ValidationError

from standfast.editor import wire_views as views
from standfast.editor.attention_view import visible
from standfast.editor.clients import Client, Clients, PeerError, PeerGone
from standfast.projections.rows import CallRow
from standfast.protocol.notices import PermissionResolvedNotice
from standfast.protocol.objects import Permission
from standfast.protocol.results import PermissionAnswer
from standfast.session.sessions import Sessions

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]

_SHOWN_FILES = 12
_PLAIN_ANSWERS = {"Allow": "allow", "Deny": "deny", "Allow for this session": "allowSession"}


class Questions:
    """Which client is being asked what. `ask` may be repeated: a client is asked once for each (call, digest)."""

    def __init__(self, sessions: Sessions, clients: Clients, spawn: Spawn) -> None:
        self._sessions = sessions
        self._clients = clients
        self._spawn = spawn
        self._asking: dict[tuple[str, int], tuple[str, asyncio.Task[None]]] = {}
        """(call, client) → (digest, task)"""

    def ask(self, client: Client, call: CallRow) -> None:
        """Put a question to one client."""
        key, digest = (call.call_id, id(client)), call.digest or ""
        asked = self._asking.get(key)
        if asked is not None:
            if asked[0] == digest:
                return
            asked[1].cancel()
        task = self._spawn(self._ask(client, views.permission(call), key), f"ask {call.call_id}")
        self._asking[key] = (digest, task)

    def resolved(self, call_id: str, decision: str) -> None:
        """It is answered, or has expired: tell those who were asked, and stop asking."""
        notice = PermissionResolvedNotice.model_validate({"call_id": call_id, "decision": decision})
        for key in [key for key in self._asking if key[0] == call_id]:
            self._asking.pop(key)[1].cancel()
        for client in self._clients:
            if client.ours:
                client.notify("standfast/permission/resolved", notice)

    def left(self, client: Client) -> None:
        """The client is gone; the questions stay."""
        for key in [key for key in self._asking if key[1] == id(client)]:
            self._asking.pop(key)[1].cancel()

    async def _ask(self, client: Client, question: Permission, key: tuple[str, int]) -> None:
        try:
            decision = await (_ask_ours if client.ours else _ask_plain)(client, question)
        except (PeerError, PeerGone, ValidationError):
            decision = None
        asked = self._asking.get(key)
        if asked is not None and asked[1] is asyncio.current_task():
            del self._asking[key]  # from here on nobody cancels: what was answered is carried to its end
        if decision is not None:
            await self._sessions.answer(question.call_id, decision[0], decision[1], client.name)


async def _ask_ours(client: Client, question: Permission) -> tuple[str, str]:
    given = PermissionAnswer.model_validate(await client.request("standfast/permission/request", question))
    return given.decision, given.digest


async def _ask_plain(client: Client, question: Permission) -> tuple[str, str] | None:
    """By `window/showMessageRequest`, for a client that knows nothing of ours."""
    params = types.ShowMessageRequestParams(
        type=types.MessageType.Warning if question.risks else types.MessageType.Info,
        message=plain_question(question),
        actions=[types.MessageActionItem(title) for title in _PLAIN_ANSWERS],
    )
    given: Any = await client.request(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
    title = str(cast(dict[str, Any], given).get("title")) if isinstance(given, dict) else ""
    decision = _PLAIN_ANSWERS.get(title)
    return (decision, question.digest) if decision is not None else None


def plain_question(question: Permission) -> str:
    """A permission as text: what would be done, what to mind, which files. Pure."""
    lines = [f"Standfast asks: {question.summary}"]
    lines += [f"Mind: {risk}" for risk in question.risks]
    lines += [f"{file.kind}: {file.uri}" for file in question.files[:_SHOWN_FILES]]
    if len(question.files) > _SHOWN_FILES:
        lines.append(f"and {len(question.files) - _SHOWN_FILES} more files")
    if question.sandbox == "none" and not question.files:
        lines.append("It runs without a sandbox.")
    return visible("\n".join(lines))
