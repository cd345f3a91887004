"""A client that sends exact bytes and sees exact answers, and a daemon's parts in this process for it to talk to."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson

from standfast.daemon.compose import Daemon, compose
from standfast.editor.connection import Connection
from standfast.places import find_places, private_directory

WAIT_S = 20.0
"""Bound of every wait: whoever waits so long has failed."""

Json = dict[str, Any]


def frame(body: bytes | Json) -> bytes:
    """A body with its header."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


@contextlib.asynccontextmanager
async def house(home: Path) -> AsyncGenerator[Daemon]:
    """All parts of a daemon, real ones, without its socket; the model is the scripted one."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('[model]\nprovider = "scripted"\n')
    places = find_places({"STANDFAST_HOME": str(home)})
    private_directory(places.state)
    async with compose(places, clients=lambda: 0) as daemon:
        yield daemon


@dataclass
class Raw:
    """One connection. `heard` keeps everything that came, in order."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    serving: asyncio.Task[None] | None = None
    """Of a connection that is served in this process."""
    connection: Connection | None = None
    heard: list[Json] = field(default_factory=list[Json])
    closed: bool = False

    def send(self, *messages: Json | bytes) -> None:
        """Send messages, framed, in one write."""
        self.writer.write(b"".join(frame(message) for message in messages))

    def send_raw(self, data: bytes) -> None:
        self.writer.write(data)

    def request(self, message_id: int | str, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "id": message_id, "method": method, "params": {} if params is None else params})

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": {} if params is None else params})

    async def next(self) -> Json | None:
        """The next message, None at the end of the connection."""
        async with asyncio.timeout(WAIT_S):
            try:
                header = await self.reader.readuntil(b"\r\n\r\n")
                body = await self.reader.readexactly(int(header.split(b":")[1]))
            except (asyncio.IncompleteReadError, ConnectionError):
                self.closed = True
                return None
        message: Json = orjson.loads(body)
        self.heard.append(message)
        return message

    async def until(self, found: Callable[[Json], bool]) -> Json:
        """Read until a message fits, and give it; earlier ones that fit count too."""
        for message in self.heard:
            if found(message):
                return message
        while (message := await self.next()) is not None:
            if found(message):
                return message
        raise AssertionError(f"the connection ended; heard {self.heard[-5:]}")

    async def answer(self, message_id: int | str) -> Json:
        return await self.until(lambda m: m.get("id") == message_id and "method" not in m)

    async def ask(self, message_id: int | str, method: str, params: Any = None) -> Any:
        """Request and result; an error fails the test."""
        self.request(message_id, method, params)
        answered = await self.answer(message_id)
        assert "result" in answered, answered
        return answered["result"]

    async def told(self, method: str, found: Callable[[Json], bool] = lambda params: True) -> Json:
        """The params of the first notification or request of a method that fits."""
        message = await self.until(lambda m: m.get("method") == method and found(m["params"]))
        return message["params"]

    async def rest(self) -> list[Json]:
        """Everything up to the end of the connection."""
        while await self.next() is not None:
            pass
        return self.heard

    async def initialize(
        self, folders: list[str] | None = None, *, ours: bool = True, capabilities: Json | None = None, **more: Any
    ) -> Json:
        """The handshake, up to `initialized`."""
        offered: Json = dict(capabilities or {})
        if ours:
            offered["experimental"] = {"standfast": {"protocolVersion": 1}}
        params = {
            "processId": None,
            "rootUri": None,
            "capabilities": offered,
            "workspaceFolders": [{"uri": uri, "name": uri} for uri in folders or []],
            **more,
        }
        result: Json = await self.ask("init", "initialize", params)
        self.notify("initialized")
        return result

    def stop_reading(self) -> None:
        """Leave everything from here on in the socket."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def read_on(self) -> None:
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    async def hang_up(self) -> None:
        """Leave without a word."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()
        await self.served()

    async def served(self) -> None:
        """Wait until the other side has let go of the connection."""
        if self.serving is not None:
            await asyncio.wait_for(asyncio.shield(self.serving), WAIT_S)


@contextlib.asynccontextmanager
async def connect(daemon: Daemon, *, message_s: float = 60.0) -> AsyncGenerator[Raw]:
    """A client on a socket pair, served by the daemon's own front."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=2**26)
    their_reader, their_writer = await asyncio.open_connection(sock=theirs)
    connection = Connection(their_reader, their_writer, daemon.core, message_s=message_s)
    serving = asyncio.create_task(connection.run())
    raw = Raw(writer, reader, serving, connection)
    try:
        yield raw
    finally:
        await raw.hang_up()


@contextlib.asynccontextmanager
async def connect_to(path: Path) -> AsyncGenerator[Raw]:
    """A client on the socket of a daemon of its own process."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=2**26)
    raw = Raw(writer, reader)
    try:
        yield raw
    finally:
        await raw.hang_up()
