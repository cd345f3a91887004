"""An editor for tests: the product's own LSP client, plus a memory of everything it was told and waits without sleeps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from standfast.cli.client import Client, Json
from support.daemon import environment, places

T = TypeVar("T")
WAIT_S = 30.0
"""Bound of every wait; generous, since the machine may be busy. A test that waits so long has failed."""
LSP = (sys.executable, "-P", "-m", "standfast", "lsp")
_message_ids = itertools.count(1)


@dataclass(slots=True)
class Editor(Client):
    """Remembers notifications and permission requests. By default permissions stay open; see `decide`."""

    heard: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    asked: list[Json] = field(default_factory=list[Json])
    """`standfast/permission/request`s, as they came."""
    decision: str | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.listen(self._hear)
        self.answer("standfast/permission/request", self._ask)

    # -- memory and waits -----------------------------------------------------------------------------------------

    def _hear(self, method: str, params: Json) -> None:
        self.heard.append((method, params))
        self.news.set()

    async def _ask(self, permission: Json) -> Json:
        self.asked.append(permission)
        self.news.set()
        await self.wait_for(lambda: self.decision, "a decision")
        return {"decision": self.decision, "digest": permission["digest"]}

    def decide(self, decision: str) -> None:
        """Answer open and later permission requests: allow, deny or allowSession."""
        self.decision = decision
        self.news.set()

    async def wait_for(self, found: Callable[[], T | None], what: str = "it", timeout_s: float = WAIT_S) -> T:
        """Wait until `found()` is truthy; it is asked again whenever something was heard. Bounded."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (result := found()):
                    self.news.clear()
                    waits = [asyncio.ensure_future(self.news.wait()), asyncio.ensure_future(self.lost.wait())]
                    try:
                        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for wait in waits:
                            wait.cancel()
                    if self.lost.is_set() and not (result := found()):
                        raise AssertionError(f"the connection ended while waiting for {what}; heard: {self.summary()}")
                return result
        except TimeoutError:
            raise AssertionError(f"waited {timeout_s} s for {what}; heard: {self.summary()}") from None

    def summary(self) -> list[str]:
        return [params.get("event", {}).get("type", method) for method, params in self.heard[-40:]]

    def told(self, method: str) -> list[Json]:
        """The params of all notifications of a method, in order."""
        return [params for heard, params in self.heard if heard == method]

    def events(self, session_id: str | None = None, type_: str | None = None) -> list[Json]:
        """Live events, in order."""
        return [
            params["event"]
            for params in self.told("standfast/event")
            if session_id in (None, params["sessionId"]) and type_ in (None, params["event"]["type"])
        ]

    async def event(self, type_: str, **fields: Any) -> Json:
        """Wait for a live event with these (camelCase) fields."""

        def find() -> Json | None:
            return next((e for e in self.events(type_=type_) if all(e.get(k) == v for k, v in fields.items())), None)

        return await self.wait_for(find, f"event {type_} {fields}")

    def diagnostics(self, uri: str) -> list[Json]:
        """What the last publish for this document said."""
        published = [p for p in self.told("textDocument/publishDiagnostics") if p["uri"] == uri]
        return published[-1]["diagnostics"] if published else []

    # -- the usual steps ------------------------------------------------------------------------------------------

    async def create(self, workspace: Path, *, mode: str = "auto", attach: bool = True, **more: Any) -> str:
        """A new session, attached; returns its id."""
        made = await self.request(
            "standfast/session/create", {"workspaceUri": workspace.as_uri(), "mode": mode, **more}
        )
        session_id: str = made["session"]["sessionId"]
        if attach:
            await self.attach(session_id)
        return session_id

    async def attach(self, session_id: str, **more: Any) -> Json:
        return await self.request("standfast/session/attach", {"sessionId": session_id, **more})

    async def start(self, session_id: str, text: str, message_id: str | None = None) -> str:
        """Send a message; returns the run's id."""
        params = {"sessionId": session_id, "text": text, "clientMessageId": message_id or f"m{next(_message_ids)}"}
        return (await self.request("standfast/run/start", params))["runId"]

    async def run_end(self, run_id: str) -> Json:
        """Wait for the run's `run_finished`."""
        return await self.event("run_finished", runId=run_id)


@contextlib.asynccontextmanager
async def open_editor(
    home: Path, folders: Sequence[Path] = (), *, env: dict[str, str] | None = None, hello: bool = True, **handshake: Any
) -> AsyncGenerator[Editor]:
    """`standfast lsp` as a subprocess, initialized (unless `hello` is False); finds or starts the home's daemon."""
    async with Editor.over_process(*LSP, env={**environment(home), **(env or {})}) as editor:
        if hello:
            await editor.initialize([folder.as_uri() for folder in folders], **handshake)
        yield editor


@contextlib.asynccontextmanager
async def open_socket(
    home: Path, folders: Sequence[Path] = (), *, hello: bool = True, **handshake: Any
) -> AsyncGenerator[Editor]:
    """Straight to the running daemon's socket, without the byte pump."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(str(places(home).socket))
    async with Editor.over_socket(sock) as editor:
        if hello:
            await editor.initialize([folder.as_uri() for folder in folders], **handshake)
        yield editor
