"""One open document of an editor, as a person and the server edit it: positions in the encoding that was agreed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from standfast.cli.client import Json
from support import Editor

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@dataclass
class Window:
    """Takes `workspace/applyEdit` as an editor does.

    `says`: what it answers. `takes`: it carries the edit out and reports it. `reports`: the text that it reports instead.
    `types`: put at the text's end by the person before the answer goes out.
    """

    editor: Editor
    uri: str
    text: str
    version: int
    says: bool = True
    takes: bool = True
    reports: str | None = None
    types: str = ""
    asked: list[Json] = field(default_factory=list[Json])
    """The documentChanges of each edit that came."""

    async def open(self) -> None:
        item = {"uri": self.uri, "languageId": "plaintext", "version": self.version, "text": self.text}
        await self.editor.notify("textDocument/didOpen", {"textDocument": item})
        self.editor.answer("workspace/applyEdit", self._edit)
        await self._arrived()

    async def type(self, text: str) -> None:
        """The person changes the document to this text."""
        self.text, self.version = text, self.version + 1
        document = {"uri": self.uri, "version": self.version}
        await self.editor.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )
        await self._arrived()

    async def close(self) -> None:
        await self.editor.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        await self._arrived()

    async def _arrived(self) -> None:
        """Messages of a connection are taken in order: an answer means that what came before was taken."""
        await self.editor.request("standfast/daemon/status", {})

    async def _edit(self, params: Json) -> Json:
        (change,) = params["edit"]["documentChanges"]
        self.asked.append(change)
        if self.types:
            await self.type(self.text + self.types)
        if self.reports is not None:
            await self.type(self.reports)
        elif self.takes:
            assert change["textDocument"]["uri"] == self.uri
            encoding = self.editor.server["capabilities"].get("positionEncoding", "utf-16")
            await self.type(edited(self.text, change["edits"], encoding))
        return {"applied": self.says}


def edited(text: str, edits: list[Any], encoding: str) -> str:
    """Apply text edits, last first."""
    places = [
        (offset(text, e["range"]["start"], encoding), offset(text, e["range"]["end"], encoding), e) for e in edits
    ]
    for start, end, one in sorted(places, key=lambda place: place[0], reverse=True):
        text = text[:start] + one["newText"] + text[end:]
    return text


def offset(text: str, position: Json, encoding: str) -> int:
    """A position as an index in code points."""
    lines = text.split("\n")
    codec, size = UNITS[encoding]
    before = sum(len(line) + 1 for line in lines[: position["line"]])
    line = lines[position["line"]].encode(codec)[: position["character"] * size]
    return before + len(line.decode(codec))
