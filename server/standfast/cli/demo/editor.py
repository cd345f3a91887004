"""The demo's editor: a plain LSP client that also speaks `standfast/*`. Remembers what it is told; answers what it is asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from standfast.cli.client import Client, Json
from standfast.cli.demo.stage import LSP, Stage
from standfast.errors import StandfastError

T = TypeVar("T")
PATIENCE_S = 45.0
CAPABILITIES: Json = {
    "workspace": {
        "workspaceFolders": True,
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "textDocumentContent": {"dynamicRegistration": False},
    },
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True, "dataSupport": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit", "command"]},
        },
    },
}


@dataclass(slots=True)
class Editor:
    """One connection over `standfast lsp`."""

    client: Client
    stage: Stage
    on_event: Callable[[Json], None]
    on_permission: Callable[[Json], None]
    diagnostics: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    """uri → what the last publish said."""
    events: list[Json] = field(default_factory=list[Json])
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        """The handshake, with the project as the open folder."""
        self.client.listen(self._hear)
        self.client.answer("standfast/permission/request", self._allow)
        await self.client.initialize([self.stage.project.as_uri()], client_id="demo", **CAPABILITIES)

    async def pid(self) -> int:
        """The daemon's process id."""
        return int((await self.client.request("standfast/daemon/status", {}))["pid"])

    async def until(self, found: Callable[[], T | None], what: str) -> T:
        """Wait until `found()` is truthy, or the connection is lost, or patience ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    if result := found():
                        return result
                    if self.client.lost.is_set():
                        break
                    self.news.clear()
                    await self._something()
        raise StandfastError("DemoStuck", f"The demo waited for {what}, and it did not come. --keep keeps the logs.")

    async def lost(self) -> None:
        """Wait until the daemon is gone."""
        async with asyncio.timeout(PATIENCE_S):
            await self.client.lost.wait()

    async def actions(self, uri: str) -> list[Json]:
        """What the editor offers on a file: code actions over the whole of it."""
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}}
        asked = {
            "textDocument": {"uri": uri},
            "range": everything,
            "context": {"diagnostics": self.diagnostics.get(uri, [])},
        }
        return await self.client.request("textDocument/codeAction", asked) or []

    async def choose(self, action: Json) -> Json:
        """Do what a click on a code action does."""
        command: Json = action["command"]
        params = {"command": command["command"], "arguments": command["arguments"]}
        return await self.client.request("workspace/executeCommand", params) or {}

    def event(self, type_: str, **fields: object) -> Json | None:
        """The first live event with these fields, if it has come."""
        return next(
            (one for one in self.events if one["type"] == type_ and all(one.get(k) == v for k, v in fields.items())),
            None,
        )

    async def _something(self) -> None:
        waits = [asyncio.ensure_future(self.news.wait()), asyncio.ensure_future(self.client.lost.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _hear(self, method: str, params: Json) -> None:
        if method == "textDocument/publishDiagnostics":
            self.diagnostics[params["uri"]] = params["diagnostics"]
        elif method == "standfast/event":
            self.events.append(params["event"])
            self.on_event(params["event"])
        self.news.set()

    async def _allow(self, permission: Json) -> Json:
        self.on_permission(permission)
        return {"decision": "allow", "digest": permission["digest"]}


@contextlib.asynccontextmanager
async def open_editor(
    stage: Stage, on_event: Callable[[Json], None], on_permission: Callable[[Json], None], failpoints: str = ""
) -> AsyncGenerator[Editor]:
    """Start `standfast lsp` as an editor does. It finds the daemon, or starts one (which then has the failpoints)."""
    log = await asyncio.to_thread((stage.folder / "lsp.log").open, "ab")
    try:
        async with Client.over_process(*LSP, env=stage.environment(failpoints), stderr=log.fileno()) as client:
            editor = Editor(client, stage, on_event, on_permission)
            await editor.open()
            yield editor
    finally:
        log.close()
