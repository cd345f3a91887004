"""Keeps what a person must look at, session by session, and shows it to whom it concerns: diagnostics and `attention/changed`.

Nothing is shown twice: per client and document the last published list is remembered. What is settled is taken away at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lsprotocol import types

from standfast.editor import uris
from standfast.editor import wire_views as views
from standfast.editor.attention_view import LineEnd, diagnostics, unknown_text
from standfast.editor.buffers import disk_text
from standfast.editor.clients import Client, Clients
from standfast.editor.marks import Marks
from standfast.editor.texts import Document, bare, split_lines, to_client
from standfast.editor.transcripts import Transcripts
from standfast.errors import NotFound
from standfast.projections.attention import AttentionItem
from standfast.protocol.notices import AttentionChangedNotice
from standfast.session.sessions import Sessions

WATCH_S = 2.0


@dataclass(frozen=True, slots=True)
class Matters:
    """What is open in one session."""

    session_id: str
    workspace_uri: str
    items: tuple[AttentionItem, ...]


@dataclass(slots=True)
class _Shown:
    """What one client was last told: document key → (URI as sent, items); workspace → items."""

    documents: dict[str, tuple[str, list[AttentionItem]]] = field(
        default_factory=dict[str, "tuple[str, list[AttentionItem]]"]
    )
    workspaces: dict[str, AttentionChangedNotice] = field(default_factory=dict[str, AttentionChangedNotice])


@dataclass(frozen=True, slots=True)
class _Known:
    """Of an open conflict: the texts that, standing in the open document, leave nothing to settle (d05), and its lines."""

    settling: frozenset[str]
    marks: Marks | None


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A file with an open conflict as it was last seen on the disk: where nobody has it open, its marks follow this."""

    stamp: tuple[int, int, int] | None
    """Time, size and inode; None: it is not there."""
    text: str | None = None
    lines: Sequence[str] = ()


class AttentionBoard:
    """Open matters of all sessions that have any and that a client has asked for. One a daemon."""

    def __init__(self, sessions: Sessions, clients: Clients, transcripts: Transcripts) -> None:
        self._sessions = sessions
        self._clients = clients
        self._transcripts = transcripts
        self._matters: dict[str, Matters] = {}
        self._shown: dict[int, _Shown] = {}
        self._known: dict[str, _Known] = {}
        self._on_disk: dict[str, _OnDisk] = {}
        self._looking = asyncio.Lock()
        """One look at a time: what was read earlier is never shown over what was read later."""

    # -- keeping --

    async def look(self, session_id: str) -> Matters | None:
        """Read one session's open matters anew and show what changed. None: nothing is open, or no such session."""
        async with self._looking:
            return await self._look(session_id)

    async def _look(self, session_id: str) -> Matters | None:
        before = self._matters.get(session_id)
        try:
            items = tuple(await self._sessions.attention(session_id))
            workspace = (await self._sessions.get(session_id)).row.workspace_uri
        except NotFound:
            items, workspace = (), ""
        if items:
            self._matters[session_id] = Matters(session_id, workspace, items)
            await self._learn(items)
        else:
            self._matters.pop(session_id, None)
        if before is not None or items:
            await self._transcripts.refresh([item.uri for item in items], self._clients)
            self.show_all()
        return self._matters.get(session_id)

    async def look_in(self, workspace_uri: str) -> None:
        """Read the open matters of a folder's sessions anew: whether it is trusted changed."""
        for session_id in [each.session_id for each in self._matters.values() if each.workspace_uri == workspace_uri]:
            await self.look(session_id)

    async def watch(self) -> None:
        """Look every few seconds whether files with open conflicts changed on the disk, and let their marks follow."""
        while True:
            await asyncio.sleep(WATCH_S)
            paths = {item.uri: path for item in self._conflicts() if (path := uris.path_of(item.uri)) is not None}
            found = await asyncio.to_thread(_look, paths, dict(self._on_disk)) if paths else {}
            if found != self._on_disk:
                self._on_disk = found
                self.show_all()

    async def opened(self, client: Client, workspace_uris: list[str]) -> list[str]:
        """A client opened folders: check what is uncertain there, then show it. Returns the sessions with open matters."""
        session_ids = await self._sessions.open_workspaces(workspace_uris)
        for session_id in session_ids:
            await self.look(session_id)
        self.show(client)
        return session_ids

    def of_document(self, uri: str, client: Client) -> list[AttentionItem]:
        """The open matters of one document, as this client may see them."""
        key = self._transcripts.key_of(uri)
        return [item for item in self._visible(client) if uris.key_of(item.uri) == key]

    def matters(self, session_id: str) -> Matters | None:
        """What is known to be open in a session."""
        return self._matters.get(session_id)

    def _conflicts(self) -> list[AttentionItem]:
        return [item for matters in self._matters.values() for item in matters.items if item.conflict_id is not None]

    async def _learn(self, items: Iterable[AttentionItem]) -> None:
        """Remember for each conflict what its document is held against."""
        for item in items:
            if item.conflict_id is not None and item.conflict_id not in self._known:
                view = await self._sessions.conflict(item.conflict_id)
                texts = frozenset(text for text in (view.merged, view.proposed) if text is not None)
                marks = None if view.found is None else Marks(view.found.removeprefix("\ufeff"))
                self._known[item.conflict_id] = _Known(texts, marks)
        open_ids = {item.conflict_id for matters in self._matters.values() for item in matters.items}
        for gone in self._known.keys() - open_ids:
            del self._known[gone]

    # -- showing --

    def show_all(self) -> None:
        """Bring every client up to date."""
        for client in self._clients:
            self.show(client)

    def show(self, client: Client) -> None:
        """Tell one client what changed for it since it was last told. Before `initialized` nothing is pushed."""
        if not client.ready or client.gone:
            return
        shown = self._shown.setdefault(id(client), _Shown())
        wanted: dict[str, list[AttentionItem]] = {}
        for item in self._visible(client):
            wanted.setdefault(uris.key_of(item.uri), []).append(item)
        for key in [*wanted, *(key for key in shown.documents if key not in wanted)]:
            self._publish(client, shown, key, wanted.get(key, []))
        if client.ours:
            self._tell(client, shown)

    def document_changed(self, client: Client, uri: str, *, opened: bool = False) -> None:
        """A client opened or edited a document. An edit is answered where it settles something or moves a line."""
        shown = self._shown.get(id(client))
        if shown is None:
            return
        key = uris.key_of(uri)
        items = [item for item in self._visible(client) if uris.key_of(item.uri) == key]
        if opened and items:
            shown.documents.setdefault(key, (uri, []))
            self._publish(client, shown, key, items, anew=True)
        else:
            self._publish(client, shown, key, items)

    def left(self, client: Client) -> None:
        """The client is gone."""
        self._shown.pop(id(client), None)

    def _visible(self, client: Client) -> list[AttentionItem]:
        """The items that concern a client: in its folders, around them, or of a session that it follows."""
        found: list[AttentionItem] = []
        for matters in self._matters.values():
            near = matters.session_id in client.attachments
            workspace = uris.path_of(matters.workspace_uri) or ""
            near = near or any(_around(workspace, folder) for folder in client.folders)
            for item in matters.items:
                path = uris.path_of(item.uri)
                if near or (path is not None and client.holds(path)):
                    found += self._in_document(client, item)
        return _once(found)

    def _in_document(self, client: Client, item: AttentionItem) -> list[AttentionItem]:
        """The item where its text is now, in the open document or else on the disk; nothing, if the person brought about
        in the document what it was about."""
        opened = client.documents.get(uris.key_of(item.uri))
        document = opened or self._on_disk.get(item.uri)
        known = self._known.get(item.conflict_id or "")
        if document is None or document.text is None or known is None:
            return [item]
        text = document.text
        if opened is not None and text in known.settling:
            return []
        if known.marks is None:
            return [item]
        line, *candidates = (known.marks.now(one, text, document.lines) for one in (item.line, *item.candidates))
        return [replace(item, line=line, candidates=tuple(candidates))]

    def _publish(
        self, client: Client, shown: _Shown, key: str, items: list[AttentionItem], *, anew: bool = False
    ) -> None:
        """Send a document's list if it is another one than before; under the client's own spelling of its URI (d23)."""
        before_uri, before = shown.documents.get(key, ("", []))
        if items == before and not anew:
            return
        document = client.documents.get(key)
        uri = self._transcripts.shown_as(items[0].uri, client) if items else before_uri
        uri = document.uri if document is not None else uri
        if before and before_uri != uri:
            self._send(client, before_uri, [], None)
        related = client.ours or client.can("text_document.publish_diagnostics.related_information")
        found = diagnostics(items, _line_end(document, client), uri=uri if related else None)
        self._send(client, uri, found, document.version if document is not None else None)
        if items:
            shown.documents[key] = (uri, items)
        else:
            shown.documents.pop(key, None)

    def _send(self, client: Client, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        client.notify_lsp(
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version),
        )

    def _tell(self, client: Client, shown: _Shown) -> None:
        """`standfast/attention/changed`, one for each workspace with anything to say."""
        by_workspace: dict[str, list[AttentionItem]] = {}
        for matters in self._matters.values():
            workspace = uris.path_of(matters.workspace_uri) or ""
            if matters.session_id in client.attachments or any(_around(workspace, f) for f in client.folders):
                by_workspace.setdefault(matters.workspace_uri, []).extend(matters.items)
        for workspace_uri in [*by_workspace, *(uri for uri in shown.workspaces if uri not in by_workspace)]:
            items = [views.attention_item(item) for item in _once(by_workspace.get(workspace_uri, []))]
            notice = AttentionChangedNotice(workspace_uri=workspace_uri, items=items)
            if shown.workspaces.get(workspace_uri) == notice:
                continue
            client.notify("standfast/attention/changed", notice)
            if items:
                shown.workspaces[workspace_uri] = notice
            else:
                shown.workspaces.pop(workspace_uri, None)


def _look(paths: Mapping[str, str], before: Mapping[str, _OnDisk]) -> dict[str, _OnDisk]:
    """The files as they are now, by URI; read only where they changed. Blocking."""
    found: dict[str, _OnDisk] = {}
    for uri, path in paths.items():
        try:
            now = os.stat(path)
        except (OSError, ValueError):  # a NUL in it is no path at all, and must not end the watch over all others
            found[uri] = _OnDisk(None)
            continue
        stamp = (now.st_mtime_ns, now.st_size, now.st_ino)
        known = before.get(uri)
        if known is not None and known.stamp == stamp:
            found[uri] = known
        else:
            text = disk_text(path) if stat.S_ISREG(now.st_mode) else None
            found[uri] = _OnDisk(stamp, text, split_lines(text or ""))
    return found


def _once(items: Iterable[AttentionItem]) -> list[AttentionItem]:
    """A folder's own matter is all its sessions' and shown once."""
    return list({(item.uri, item.trust) if item.trust else id(item): item for item in items}.values())


def _around(workspace: str, folder: str) -> bool:
    """A client's folder holds the session's workspace, or lies in it."""
    return bool(workspace) and (uris.within(workspace, folder) or uris.within(folder, workspace))


def _line_end(document: Document | None, client: Client) -> LineEnd:
    if document is None:
        return unknown_text

    def end(line: int) -> int | None:
        if line >= len(document.lines):
            return None
        text = bare(document.lines[line])
        return to_client(text, len(text), client.codec)

    return end
