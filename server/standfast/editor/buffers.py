"""The unsaved text of all editors, as the tools see it: an implementation of `files.buffers.Buffers` (design.md "Files", "Buffers").

A client's report (didOpen, didChange, didSave) is the only truth about a buffer; what it answers to `workspace/applyEdit` is not
(Neovim answers true to an edit it skipped), so a write counts once its text is in what the editor reports.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lsprotocol import types

from standfast.editor import uris
from standfast.editor.clients import Client, PeerError, PeerGone
from standfast.editor.texts import Document, minimal_edits
from standfast.files.buffers import Buffer, BufferWrite
from standfast.files.merge import merge

REPORT_S = 2.0
"""How long after its answer an editor may take to report the text."""
ANSWER_S = 30.0
"""How long an editor may take to answer at all (it may ask the person)."""
DISK_MAX = 64 * 1024 * 1024

Merge = Callable[[str, str, str], Awaitable[str | None]]
"""(base, ours, theirs) → the merged text, None where they contradict each other."""


async def merge_texts(base: str, ours: str, theirs: str) -> str | None:
    """git's three-way merge (`files/merge.py`)."""
    merged = await merge(base.encode(), theirs.encode(), ours.encode())
    return merged.decode() if merged is not None else None


@dataclass(eq=False)
class _Open:
    """One document that one client has open."""

    client: Client
    document: Document
    changed: bool
    """It may differ from the disk: opened with other text, or edited since it was opened or saved."""
    order: int
    """Of its last change, over all clients: the highest is the newest."""
    reports: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at each report; a write in progress waits for it."""


class OpenBuffers:
    """All open documents, by path. Fed by the connections; read and written by the tools."""

    def __init__(self, merge: Merge = merge_texts, *, report_s: float = REPORT_S) -> None:
        self._merge = merge
        self._report_s = report_s
        self._by_path: dict[str, list[_Open]] = {}
        self._order = 0

    # -- what the clients report --

    async def opened(self, client: Client, document: Document) -> None:
        """didOpen. Opened with other text than the disk's, it is unsaved: editors restore unsaved buffers so."""
        path = uris.path_of(document.uri)
        if path is None:
            return
        self.closed(client, document.uri)
        on_disk = await asyncio.to_thread(disk_text, path)
        self._by_path.setdefault(path, []).append(_Open(client, document, on_disk != document.text, self._next()))

    def changed(self, client: Client, uri: str) -> None:
        """didChange; the document has its new text already."""
        for found in self._of(client, uri):
            found.changed = True
            found.order = self._next()
            found.reports.set()

    def saved(self, client: Client, uri: str) -> None:
        """didSave: the disk has what the buffer has."""
        for found in self._of(client, uri):
            found.changed = False
            found.reports.set()

    def closed(self, client: Client, uri: str) -> None:
        """didClose: the person gave the buffer up, or saved it."""
        path = uris.path_of(uri) or ""
        rest = [found for found in self._by_path.get(path, []) if found.client is not client]
        for gone in self._of(client, uri):
            gone.reports.set()
        if rest:
            self._by_path[path] = rest
        else:
            self._by_path.pop(path, None)

    def left(self, client: Client) -> None:
        """The client's connection is over."""
        for path in [path for path, opens in self._by_path.items() if any(o.client is client for o in opens)]:
            for found in self._by_path[path]:
                found.reports.set()
            rest = [found for found in self._by_path[path] if found.client is not client]
            if rest:
                self._by_path[path] = rest
            else:
                del self._by_path[path]

    # -- what the tools ask --

    def get(self, path: Path) -> Buffer | None:
        """The newest open text of a file: unsaved text before clean text, whoever has it open."""
        opens = self._find(path)
        if not opens:
            return None
        dirty = self._dirty(path, opens)
        newest = max(dirty or opens, key=lambda found: found.order)
        return Buffer(
            uri=newest.document.uri,
            version=newest.document.version,
            text=newest.document.text,
            dirty=bool(dirty),
            disputed=len({found.document.text for found in dirty}) > 1,
            editable=newest.client.can("workspace.apply_edit"),
        )

    async def write(self, buffer: Buffer, text: str) -> BufferWrite:
        """Send the change from `buffer.text` to `text` to the client that holds that buffer, and wait for its confirmation.

        `refused`: the buffer moved on before the edit, or the client cannot edit. `unknown`: no report came; never repeat it.
        """
        target = self._holder(buffer)
        if target is None or not target.client.can("workspace.apply_edit"):
            return BufferWrite("refused", target.document.text if target else None)
        target.reports.clear()
        if text == buffer.text:
            return BufferWrite("applied", text)
        asking = asyncio.ensure_future(_apply_edit(target, buffer, text))
        try:
            return await self._confirmed(target, buffer.text, text, asking)
        finally:
            asking.cancel()

    async def _confirmed(
        self, target: _Open, base: str, text: str, asking: asyncio.Future[Literal["yes", "no", "gone"]]
    ) -> BufferWrite:
        """Wait until the editor's text holds the edit, or says no, or has had its time."""
        loop = asyncio.get_running_loop()
        deadline, reporting = loop.time() + ANSWER_S, False
        while True:
            if await self._holds(base, text, target.document.text):
                return BufferWrite("applied", target.document.text)
            if asking.done():
                answer = asking.result()
                if answer == "no":
                    return BufferWrite("refused", target.document.text)
                if answer == "gone" or target.client.gone:
                    return BufferWrite("unknown")
                if not reporting:
                    deadline, reporting = loop.time() + self._report_s, True
            if loop.time() >= deadline:
                moved = target.document.text != base
                return BufferWrite("refused" if moved else "unknown", target.document.text if moved else None)
            await _first(asking, target.reports, deadline - loop.time())
            target.reports.clear()

    async def _holds(self, base: str, wanted: str, reported: str) -> bool:
        """Merging the edit into the reported text changes nothing: the edit is in it, whatever else was typed."""
        if reported == wanted:
            return True
        return reported != base and await self._merge(base, wanted, reported) == reported

    # -- pieces --

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _of(self, client: Client, uri: str) -> Iterator[_Open]:
        opens = self._by_path.get(uris.path_of(uri) or "", [])
        return (found for found in opens if found.client is client)

    def _find(self, path: Path) -> list[_Open]:
        """By path, else by inode: an editor may have come through a link."""
        opens = self._by_path.get(os.path.normpath(path))
        if opens or not any(os.path.basename(key) == path.name for key in self._by_path):
            return opens or []
        for key, found in self._by_path.items():
            if os.path.basename(key) == path.name and _same_file(key, path):
                return found
        return []

    def _dirty(self, path: Path, opens: list[_Open]) -> list[_Open]:
        """The opens whose text is not the disk's. The disk is read only if one may differ."""
        if not any(found.changed for found in opens):
            return []
        on_disk = disk_text(str(path))
        return [found for found in opens if found.changed and found.document.text != on_disk]

    def _holder(self, buffer: Buffer) -> _Open | None:
        """The open document that `get` told of, newest first; None if it was closed or moved on."""
        opens = self._by_path.get(uris.path_of(buffer.uri) or "", [])
        same = [o for o in opens if o.document.uri == buffer.uri and o.document.version == buffer.version]
        same = [o for o in same if o.document.text == buffer.text]
        return max(same, key=lambda found: found.order, default=None)


async def _apply_edit(target: _Open, buffer: Buffer, text: str) -> Literal["yes", "no", "gone"]:
    """Send the edit; what the client says to it."""
    edits: list[Any] = list(minimal_edits(buffer.text, text, target.client.codec))
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=buffer.uri, version=buffer.version)
    if target.client.can("workspace.workspace_edit.document_changes"):
        edit = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)])
    else:
        edit = types.WorkspaceEdit(changes={buffer.uri: edits})
    params = types.ApplyWorkspaceEditParams(edit=edit, label="Standfast")
    try:
        answer = await target.client.request(types.WORKSPACE_APPLY_EDIT, params)
    except PeerError:
        return "no"
    except PeerGone:
        return "gone"
    return "yes" if isinstance(answer, dict) and answer.get("applied") is True else "no"  # pyright: ignore[reportUnknownMemberType]


async def _first(asking: asyncio.Future[Any], report: asyncio.Event, timeout_s: float) -> None:
    """Wait for a report, for the answer if it is still out, or for the time to pass."""
    waiting = asyncio.ensure_future(report.wait())
    pending: set[asyncio.Future[Any]] = {waiting} if asking.done() else {waiting, asking}
    try:
        await asyncio.wait(pending, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def disk_text(path: str) -> str | None:
    """The file's text as an editor would show it (without a BOM); None if it is none, or too large to be compared."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path of the client's, never followed further
            data = file.read(DISK_MAX + 1)
        return data.decode("utf-8-sig") if len(data) <= DISK_MAX else None
    except (OSError, ValueError):
        return None


def _same_file(one: str, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
