"""One connected client as the rest of the front sees it: what it can do, what it has open, and how to speak to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from lsprotocol import converters, types
from pygls.capabilities import get_capability
from pygls.workspace import PositionCodec

from standfast.editor import uris
from standfast.editor.messages import MessageId, Response
from standfast.editor.outbox import Outbox
from standfast.editor.texts import Document
from standfast.events.types import Recorded
from standfast.protocol.base import Wire, wire_json
from standfast.protocol.notices import ClientCapability

CONVERTER = converters.get_converter()
"""LSP types to and from JSON; one for all connections (each costs 10 ms and much memory)."""


class PeerError(Exception):
    """The client answered a request of ours with an error."""


class PeerGone(Exception):
    """The client left before it answered."""


@dataclass(slots=True)
class Attachment:
    """A session that this client follows. Until the answer to attach is out, live events wait in `waiting`."""

    sent_seq: int = 0
    waiting: list[Recorded] | None = field(default_factory=list[Recorded])
    workspace_uri: str = ""


@dataclass
class Client:
    """The state of one connection. Everything sent goes through `outbox`, in order."""

    name: str
    """Who it says it is (`clientInfo.name`), with a number of ours: `by` of its answers to permissions."""
    outbox: Outbox
    capability: ClientCapability | None = None
    """None: a plain LSP client."""
    lsp: types.ClientCapabilities = field(default_factory=types.ClientCapabilities)
    codec: PositionCodec = field(default_factory=PositionCodec)
    folders: dict[str, str] = field(default_factory=dict[str, str])
    """Path → URI as the client spells it."""
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    attachments: dict[str, Attachment] = field(default_factory=dict[str, Attachment])
    asked_folder: set[str] = field(default_factory=set[str])
    """Sessions of another folder that it was asked about (`elsewhere`)."""
    ready: bool = False
    """`initialized` came: diagnostics may be pushed."""
    _waiting: dict[MessageId, asyncio.Future[Any]] = field(default_factory=dict[MessageId, "asyncio.Future[Any]"])
    _requests: int = 0
    gone: bool = False

    # -- what it can do --

    def can(self, path: str) -> bool:
        """Whether an LSP client capability is there, e.g. `can("workspace.apply_edit")`."""
        return bool(get_capability(self.lsp, path))

    @property
    def ours(self) -> bool:
        """It speaks the methods beyond LSP."""
        return self.capability is not None

    def holds(self, path: str) -> bool:
        """Whether a path is one of its folders or lies in one."""
        return any(uris.within(path, folder) for folder in self.folders)

    # -- speaking --

    def notify(self, method: str, params: Wire) -> None:
        """Send a notification of ours."""
        self.notify_json(method, wire_json(params))

    def notify_lsp(self, method: str, params: Any) -> None:
        """Send a notification of LSP (an lsprotocol value)."""
        self.notify_json(method, orjson.dumps(CONVERTER.unstructure(params)))

    def notify_json(self, method: str, params: bytes) -> None:
        """Send a notification whose params are JSON already."""
        self.outbox.put(b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params))

    async def request(self, method: str, params: Wire | Any) -> Any:
        """Ask the client and wait. Raises PeerError, or PeerGone when the connection ends."""
        if self.gone:
            raise PeerGone
        self._requests += 1
        number = self._requests
        body = wire_json(params) if isinstance(params, Wire) else orjson.dumps(CONVERTER.unstructure(params))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.outbox.put(b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), body))
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None and not self.gone:
                self.outbox.put(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}' % number)

    def answered(self, response: Response) -> None:
        """Take an answer of the client. One to a question that was never asked, or is settled, is nothing."""
        future = self._waiting.pop(response.id, None)
        if future is None or future.done():
            return
        if response.error is None:
            future.set_result(response.result)
        else:
            future.set_exception(PeerError(str(response.error.get("message", ""))))

    def leave(self) -> None:
        """The connection is over: nobody waits for it any longer."""
        self.gone = True
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(PeerGone())
        self.attachments.clear()
        self.documents.clear()


class Clients:
    """Who is connected. A client is here from its `initialize` to the end of its connection."""

    def __init__(self) -> None:
        self._all: dict[int, Client] = {}

    def add(self, client: Client) -> None:
        self._all[id(client)] = client

    def remove(self, client: Client) -> None:
        self._all.pop(id(client), None)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def attached(self, session_id: str) -> list[Client]:
        """The clients that follow a session."""
        return [client for client in self if session_id in client.attachments]


def structure(value: Any, shape: Any) -> Any:
    """JSON as an lsprotocol value; raises cattrs' errors (see `dispatch`)."""
    return cast(Any, CONVERTER).structure(value, shape)
