"""What a connection's own messages do: initialize, initialized, the open documents, the open folders, and leaving."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, cast

from lsprotocol import types
from pydantic import ValidationError

from standfast.editor import uris
from standfast.editor.clients import Client
from standfast.editor.core import Core
from standfast.editor.faults import WireFault, invalid_params
from standfast.editor.features import features_of
from standfast.editor.lsp_server import EditorServer, invoke, structure_params
from standfast.editor.messages import Notification
from standfast.editor.texts import Document
from standfast.protocol.base import PROTOCOL_VERSION
from standfast.protocol.errors import VERSION_MISMATCH
from standfast.protocol.notices import ClientCapability

Spawn = Callable[[Coroutine[Any, Any, None], str], None]


class Lifecycle:
    """The LSP side of one client. The connection calls it only where the state allows."""

    def __init__(self, core: Core, client: Client) -> None:
        self._core = core
        self._client = client
        self.server: EditorServer | None = None
        self._notes: dict[str, Callable[[Any, Spawn], Coroutine[Any, Any, None]]] = {
            types.INITIALIZED: self._initialized,
            types.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            types.TEXT_DOCUMENT_DID_SAVE: self._did_save,
            types.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._folders_changed,
            types.WINDOW_WORK_DONE_PROGRESS_CANCEL: self._progress_cancelled,
        }

    def initialize(self, params: Any) -> types.InitializeResult:
        """Raises WireFault: -32602, or `VersionMismatch`; then the client may try again."""
        capability = _our_capability(params)
        structured = cast(types.InitializeParams, structure_params(types.INITIALIZE, params))
        core, client = self._core, self._client
        server = EditorServer(core.version, features_of(core, client))
        answer = server.initialize(structured)
        self.server = server
        client.capability = capability
        client.lsp = structured.capabilities
        client.codec = server.codec
        who = structured.client_info.name if structured.client_info is not None else "editor"
        client.name = f"{who[:60]} ({client.name})"
        self._take_folders()
        self._take_trust(params)
        core.clients.add(client)
        return server.result(answer, core.sandbox, core.version)

    async def notification(self, note: Notification, spawn: Spawn) -> None:
        """Take a notification, in order with everything else of this client. What nobody knows is left aside, as LSP says."""
        handler = self._notes.get(note.method)
        if handler is not None:
            await handler(structure_params(note.method, note.params), spawn)

    async def leave(self) -> None:
        """The connection is over, however it ended."""
        self._core.clients.remove(self._client)
        self._core.buffers.left(self._client)
        self._core.publisher.left(self._client)

    # -- folders --

    async def _initialized(self, params: Any, spawn: Spawn) -> None:
        self._client.ready = True
        spawn(self._open(list(self._client.folders.values())), "open folders")

    async def _open(self, folders: list[str]) -> None:
        found = self._core.degraded()
        if found:
            self._core.publisher.degraded(found, [self._client])
        await self._core.publisher.opened(self._client, list(dict.fromkeys(folders)))

    async def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams, spawn: Spawn) -> None:
        assert self.server is not None
        handler = self.server.handler(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
        if handler is not None:
            await invoke(handler, params)
        self._take_folders()
        removed = [uris.path_of(folder.uri) or "" for folder in params.event.removed]
        for session_id, attachment in list(self._client.attachments.items()):
            path = uris.path_of(attachment.workspace_uri) or ""
            if any(uris.within(path, folder) for folder in removed) and not self._client.holds(path):
                del self._client.attachments[session_id]
        self._core.publisher.board.show(self._client)
        added = [folder.uri for folder in params.event.added]
        if added:
            spawn(self._open(added), "open folders")

    def _take_folders(self) -> None:
        """Both the path as spelt and the real one count: sessions may be bound by either."""
        assert self.server is not None
        self._client.folders.clear()
        for uri in self.server.folders:
            path = uris.path_of(uri)
            if path is not None:
                self._client.folders[path] = uri
                self._client.folders[os.path.realpath(path)] = uri

    def _take_trust(self, params: dict[str, Any]) -> None:
        """`initializationOptions.workspaceTrusted: false`: the editor itself says that the folders are untrusted."""
        options = params.get("initializationOptions")
        if isinstance(options, dict) and "workspaceTrusted" in options:
            untrusted = cast(dict[str, Any], options)["workspaceTrusted"] is False
            self._core.sessions.declare_untrusted(list(self._client.folders.values()), untrusted=untrusted)

    # -- documents --

    async def _did_open(self, params: types.DidOpenTextDocumentParams, spawn: Spawn) -> None:
        item = params.text_document
        document = Document(item.uri, item.version, item.text, self._client.codec)
        self._client.documents[uris.key_of(item.uri)] = document
        await self._core.buffers.opened(self._client, document)
        self._core.publisher.board.document_changed(self._client, item.uri, opened=True)

    async def _did_change(self, params: types.DidChangeTextDocumentParams, spawn: Spawn) -> None:
        document = self._client.documents.get(uris.key_of(params.text_document.uri))
        if document is not None:
            document.change(params.content_changes, params.text_document.version)
            self._core.buffers.changed(self._client, document.uri)
            self._core.publisher.board.document_changed(self._client, document.uri)

    async def _did_save(self, params: types.DidSaveTextDocumentParams, spawn: Spawn) -> None:
        self._core.buffers.saved(self._client, params.text_document.uri)

    async def _did_close(self, params: types.DidCloseTextDocumentParams, spawn: Spawn) -> None:
        self._client.documents.pop(uris.key_of(params.text_document.uri), None)
        self._core.buffers.closed(self._client, params.text_document.uri)
        self._core.publisher.board.document_changed(self._client, params.text_document.uri)

    async def _progress_cancelled(self, params: types.WorkDoneProgressCancelParams, spawn: Spawn) -> None:
        spawn(self._core.publisher.progress.cancel(params.token), "cancel run")


def _our_capability(params: Any) -> ClientCapability | None:
    """`capabilities.experimental.standfast`, None for a plain client. Raises WireFault."""
    value = params
    for name in ("capabilities", "experimental", "standfast"):
        value = cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None
    if value is None:
        return None
    try:
        capability = ClientCapability.model_validate(value)
    except ValidationError as error:
        raise invalid_params(error) from None
    if capability.protocol_version != PROTOCOL_VERSION:
        asked = capability.protocol_version
        to_do = (
            "Update the client"
            if asked < PROTOCOL_VERSION
            else "Update the daemon; if that is done, `standfast daemon stop --wait` ends this one after its runs"
        )
        raise WireFault(
            VERSION_MISMATCH,
            f"The client speaks protocol version {asked}, the daemon version {PROTOCOL_VERSION}. Nothing was started. {to_do}.",
            {
                "reason": "VersionMismatch",
                "clientProtocolVersion": asked,
                "daemonProtocolVersion": PROTOCOL_VERSION,
            },
        )
    return capability
