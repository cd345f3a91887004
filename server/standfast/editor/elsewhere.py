"""A session that is looked at from an editor with another folder open: which of the two its tools act in (R2.2).

It is the session's own, whoever looks, until the person says otherwise: by answering the question here, by `rebind`, or by their
setting. A folder that is gone or replaced is another matter (`WorkspaceMoved`, …) and is not asked about here.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal, cast

from lsprotocol import types

from standfast.editor import uris
from standfast.editor.attention_view import visible
from standfast.editor.clients import Client, PeerError, PeerGone
from standfast.editor.questions import Spawn
from standfast.errors import Busy, StandfastError
from standfast.session.sessions import Sessions
from standfast.session.views import SessionView

Choice = Literal["ask", "original", "current"]

STAY = "Keep its folder"
MOVE = "Use the open folder"


class Elsewhere:
    """`ask` puts the question once to each connection; `original` never; `current` moves the session when a message is sent."""

    def __init__(self, sessions: Sessions, choice: Choice, spawn: Spawn) -> None:
        self._sessions = sessions
        self._choice: Choice = choice
        self._spawn = spawn

    async def attached(self, client: Client, found: SessionView) -> None:
        """A client looks at a session: ask, if there is something to ask. Nothing waits for the answer."""
        session_id = found.row.session_id
        if self._choice != "ask" or found.workspace_state != "present" or session_id in client.asked_folder:
            return
        here = await asyncio.to_thread(_other_folder, client, found.row.workspace_uri)
        if here is not None:
            client.asked_folder.add(session_id)
            await self._ask(client, found, here)

    def look(self, client: Client, found: SessionView) -> None:
        """`attached`, beside everything else."""
        self._spawn(self.attached(client, found), "ask for the folder")

    async def going_on(self, client: Client, session_id: str) -> None:
        """A message is about to be sent: with `current`, the session moves to the editor's folder first, unless a run goes on there.

        Raises SessionNotFound, WorkspaceNotFound.
        """
        if self._choice != "current" or not client.folders:
            return
        found = await self._sessions.get(session_id)
        here = await asyncio.to_thread(_other_folder, client, found.row.workspace_uri)
        if here is not None:
            try:
                await self._sessions.rebind(session_id, here)
            except Busy:
                return  # the message waits for a run that works where it began

    async def _ask(self, client: Client, found: SessionView, here: str) -> None:
        question = types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=visible(
                f"The session “{found.row.title}” works in {uris.path_of(found.row.workspace_uri)}, which is another folder than "
                f"the one that is open here ({uris.path_of(here)}). Its tools go on acting there unless you choose otherwise."
            ),
            actions=[types.MessageActionItem(STAY), types.MessageActionItem(MOVE)],
        )
        try:
            given: Any = await client.request(types.WINDOW_SHOW_MESSAGE_REQUEST, question)
            if isinstance(given, dict) and cast(dict[str, Any], given).get("title") == MOVE:
                await self._sessions.rebind(found.row.session_id, here)
        except (PeerError, PeerGone):
            return  # no answer: it stays where it is
        except StandfastError as error:
            client.notify_lsp(
                types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(types.MessageType.Warning, visible(error.message))
            )


def _other_folder(client: Client, workspace_uri: str) -> str | None:
    """The editor's first folder, where none of its folders has to do with the session's; None where one has, or it has none."""
    path = uris.path_of(workspace_uri) or ""
    for spelled in (path, os.path.realpath(path)):
        if client.holds(spelled) or any(uris.within(folder, spelled) for folder in client.folders):
            return None
    return next(iter(client.folders.values()), None)
