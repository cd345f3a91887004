"""A scene: a folder, an editor that has it open, a session in it, and a model that does what the test wrote down.

    scene = await stage.scene(folder)
    await scene.run([read("a.txt")], [write("a.txt", "…")])     # one list a reply: its calls; then "Done."
    scene.told()                                                 # what the model was told last

An act between two replies is a function: it is called when the model is asked, before the reply goes out.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edits.window import Window
from fake_api import FakeApi, Request, ToolUse, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import Json
from support import Editor, RunningDaemon, open_editor, open_socket

CAN_EDIT: Json = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
Act = Callable[[], object]
Turn = Sequence[ToolUse | Act] | Answer
_tags = itertools.count(1)


def read(path: str) -> ToolUse:
    return tool("read_file", path=path)


def write(path: str, content: str) -> ToolUse:
    return tool("write_file", path=path, content=content)


def edit(path: str, old: str, new: str) -> ToolUse:
    return tool("edit_file", path=path, old_text=old, new_text=new)


def patch(body: str) -> ToolUse:
    return tool("apply_patch", patch=f"*** Begin Patch\n{body}*** End Patch\n")


@dataclass
class Model:
    """A strict fake API whose answers go by session: the first message of each begins with a tag of its own."""

    turns: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    requests: dict[str, list[Request]] = field(default_factory=dict[str, list[Request]])

    def answer(self, request: Request) -> Answer:
        tag = request.messages[0]["content"][0]["text"].split()[0]
        self.requests.setdefault(tag, []).append(request)
        waiting = self.turns.setdefault(tag, [])
        turn = waiting.pop(0) if waiting else reply("Done.")
        if not isinstance(turn, Sequence):
            return turn
        for act in turn:
            if not isinstance(act, ToolUse):
                act()
        calls = [call for call in turn if isinstance(call, ToolUse)]
        return reply(tools=calls) if calls else reply("Done.")


@dataclass
class Scene:
    """One test's session. `editor` is the window that started it."""

    editor: Editor
    folder: Path
    session_id: str
    tag: str
    model: Model

    def path(self, name: str = "a.txt") -> Path:
        return self.folder / name

    def uri(self, name: str = "a.txt") -> str:
        return self.path(name).as_uri()

    # -- runs ---------------------------------------------------------------------------------------------------------

    async def start(self, *turns: Turn) -> str:
        self.model.turns.setdefault(self.tag, []).extend(turns)
        return await self.editor.start(self.session_id, f"{self.tag} go on")

    async def run(self, *turns: Turn) -> str:
        """A run whose replies make these calls, to its end, which is a good one; its id."""
        run_id = await self.start(*turns)
        end = await self.editor.run_end(run_id)
        assert end["status"] == "succeeded", end
        return run_id

    def told(self) -> str:
        """The result of the last call that the model was told."""
        return self.model.requests[self.tag][-1].last_results[-1]["content"]

    def heard(self) -> str:
        """Everything the model was sent at last."""
        return self.model.requests[self.tag][-1].whole_text

    # -- what a person sees and does ----------------------------------------------------------------------------------

    async def shown(self, name: str = "a.txt") -> Json:
        """The one diagnostic on a file, once it is there."""
        found = await self.editor.wait_for(lambda: self.editor.diagnostics(self.uri(name)), f"a diagnostic on {name}")
        assert len(found) == 1, found
        return found[0]

    async def clear(self, name: str = "a.txt") -> None:
        """Nothing is shown on a file (any more)."""
        uri = self.uri(name)
        await self.editor.request("standfast/daemon/status", {})
        await self.editor.wait_for(lambda: not self.editor.diagnostics(uri), f"{name} to be clear")

    async def actions(self, name: str = "a.txt", line: int = 0, last: int | None = None) -> dict[str, Json]:
        """The code actions at a line (from 0), or from there to `last`, by title."""
        end = line if last is None else last
        place = {"start": {"line": line, "character": 0}, "end": {"line": end, "character": 0}}
        params = {"textDocument": {"uri": self.uri(name)}, "range": place, "context": {"diagnostics": []}}
        found = await self.editor.request("textDocument/codeAction", params)
        return {action["title"]: action for action in found}

    async def choose(self, action: Json) -> Any:
        """As an editor does: resolve the action without its command, then execute the command."""
        kept = {key: value for key, value in action.items() if key != "command"}
        command = (await self.editor.request("codeAction/resolve", kept))["command"]
        params = {"command": command["command"], "arguments": command["arguments"]}
        return await self.editor.request("workspace/executeCommand", params)

    async def act(self, title: str, name: str = "a.txt") -> Any:
        """Choose the action of that title on the file's diagnostic."""
        diagnostic = await self.shown(name)
        found = await self.actions(name, diagnostic["range"]["start"]["line"])
        assert title in found, list(found)
        return await self.choose(found[title])

    async def conflict(self, **fields: Any) -> Json:
        """The newest conflict, as the wire tells it."""
        raised = await self.editor.event("conflict_raised", **fields)
        return await self.editor.request("standfast/conflict/get", {"conflictId": raised["conflictId"]})

    # -- documents ----------------------------------------------------------------------------------------------------

    async def open(self, text: str, name: str = "a.txt", *, version: int = 1, **how: Any) -> Window:
        """Open a document in this scene's editor."""
        window = Window(self.editor, self.uri(name), text, version, **how)
        await window.open()
        return window


@dataclass
class Stage:
    """A daemon and its model, for all scenes of a module."""

    daemon: RunningDaemon
    model: Model
    api: FakeApi

    @contextlib.asynccontextmanager
    async def scene(
        self,
        folder: Path,
        *,
        mode: str = "auto",
        capabilities: Json | None = None,
        pump: bool = False,
    ) -> AsyncGenerator[Scene]:
        """`pump`: through `standfast lsp`, as an editor comes; else straight to the socket that it pumps to, which is quicker."""
        tag = f"scene-{next(_tags)}"
        asked = CAN_EDIT if capabilities is None else capabilities
        opened = open_editor if pump else open_socket
        async with opened(self.daemon.home, [folder], **asked) as editor:
            session_id = await editor.create(folder, mode=mode)
            yield Scene(editor, folder, session_id, tag, self.model)
        refused = [request.error for request in self.api.refused]
        assert not refused
