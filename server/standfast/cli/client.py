"""A small LSP client: JSON-RPC in the base protocol's frames, over a socket or a process's pipes.

Used by the commands, the demo and the tests. Values are plain JSON; the shapes are in `protocol-spec/reference.md`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from standfast.errors import StandfastError

PROTOCOL_VERSION = 1
METHOD_NOT_FOUND = -32601
Json = dict[str, Any]
Answer = Callable[[Json], Awaitable[Any]]
Listener = Callable[[str, Json], None]


class RequestFailed(StandfastError):
    """The daemon answered with an error. `code` is its number; `reason` the fixed word, where it has one."""

    def __init__(self, error: Json) -> None:
        data = error.get("data")
        facts: Json = dict(data) if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
        super().__init__(str(facts.pop("reason", "RequestFailed")), str(error.get("message", "")), **facts)
        self.code = int(error.get("code", 0))


class ConnectionLost(StandfastError):
    """The daemon went away. Reason `DaemonLost`."""

    def __init__(self) -> None:
        super().__init__(
            "DaemonLost",
            "The daemon went away. Everything up to the last event is stored; run the command again to go on.",
        )


@dataclass(slots=True)
class Client:
    """One connection. Use `over_socket` or `over_process`; both end it when the block is left."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: Json = field(default_factory=dict[str, Any])
    """The result of `initialize`."""
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    process: asyncio.subprocess.Process | None = None
    """The language server, where the client started it."""
    _waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict[int, "asyncio.Future[Any]"])
    _answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    _listeners: list[Listener] = field(default_factory=list[Listener])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _next_id: int = 1

    @classmethod
    @contextlib.asynccontextmanager
    async def over_socket(cls, sock: socket.socket) -> AsyncGenerator[Self]:
        sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=sock)
        async with cls(reader, writer).running() as client:
            yield client

    @classmethod
    @contextlib.asynccontextmanager
    async def over_process(cls, *words: str, env: Mapping[str, str], stderr: int | None = None) -> AsyncGenerator[Self]:
        """Start a language server and speak with it over its stdin and stdout, as an editor does."""
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=stderr, env=dict(env)
        )
        assert process.stdin is not None and process.stdout is not None
        client = cls(process.stdout, process.stdin)
        client.process = process
        try:
            async with client.running():
                yield client
        finally:
            await process.wait()  # it ends by itself: its stdin is closed

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[Self]:
        """Read what comes while the block runs."""
        self._start(self._read())
        try:
            yield self
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.writer.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """The client owns its tasks: they end with its block."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- to the server --------------------------------------------------------------------------------------------

    async def initialize(
        self, folders: Sequence[str] = (), *, client_id: str | None = None, plain: bool = False, **more: Any
    ) -> Json:
        """The LSP handshake. `plain`: as an editor that knows nothing of Standfast. `more`: further capabilities."""
        capabilities: Json = dict(more)
        if not plain:
            capability: Json = {"protocolVersion": PROTOCOL_VERSION}
            if client_id:
                capability["clientId"] = client_id
            capabilities["experimental"] = {"standfast": capability}
        params: Json = {
            "processId": None,
            "rootUri": folders[0] if folders else None,
            "workspaceFolders": [{"uri": uri, "name": uri.rsplit("/", 1)[-1]} for uri in folders] or None,
            "capabilities": capabilities,
        }
        self.server = await self.request("initialize", params)
        await self.notify("initialized", {})
        return self.server

    async def request(self, method: str, params: Json | None = None) -> Any:
        """Send a request and wait for its result. Raises RequestFailed, ConnectionLost."""
        if self.lost.is_set():
            raise ConnectionLost
        ident, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = future
        try:
            message: Json = {"jsonrpc": "2.0", "id": ident, "method": method}
            await self.send(message if params is None else {**message, "params": params})
            return await future
        finally:
            self._waiting.pop(ident, None)

    async def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        await self.send(message if params is None else {**message, "params": params})

    async def send(self, message: Any) -> None:
        """Send any JSON value as one frame."""
        await self.send_bytes(frame(message))

    async def send_bytes(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as error:
            raise ConnectionLost from error

    async def leave(self) -> None:
        """Say goodbye as LSP wants it: `shutdown`, then `exit`."""
        await self.request("shutdown")
        await self.notify("exit")

    # -- from the server ------------------------------------------------------------------------------------------

    def answer(self, method: str, answer: Answer) -> None:
        """Answer the server's requests of this method. Others get "method not found"."""
        self._answers[method] = answer

    def listen(self, listener: Listener) -> None:
        """Call `listener(method, params)` for each notification, in order."""
        self._listeners.append(listener)

    async def _read(self) -> None:
        try:
            while True:
                self._take(json.loads(await read_frame(self.reader)))
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            self.lost.set()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionLost())

    def _take(self, message: Json) -> None:
        match message:
            case {"method": str() as method, "id": ident}:
                self._start(self._respond(ident, method, message.get("params") or {}))
            case {"method": str() as method}:
                for listener in self._listeners:
                    listener(method, message.get("params") or {})
            case {"id": int() as ident} if ident in self._waiting:
                self._settle(self._waiting[ident], message)
            case _:
                pass

    @staticmethod
    def _settle(future: asyncio.Future[Any], message: Json) -> None:
        if future.done():
            return
        if "error" in message:
            future.set_exception(RequestFailed(message["error"]))
        else:
            future.set_result(message.get("result"))

    async def _respond(self, ident: Any, method: str, params: Json) -> None:
        answer = self._answers.get(method)
        reply: Json = {"jsonrpc": "2.0", "id": ident}
        if answer is None:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": f"{method} is not offered here"}
        else:
            reply["result"] = await answer(params)
        with contextlib.suppress(ConnectionLost):
            await self.send(reply)


def frame(message: Any) -> bytes:
    """One message of the base protocol."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The body of the next message. Raises IncompleteReadError at the end."""
    header = await reader.readuntil(b"\r\n\r\n")
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return await reader.readexactly(int(value))
    raise ConnectionResetError("a message without Content-Length")
