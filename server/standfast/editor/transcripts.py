"""The transcript document of a session, `standfast:/session/<id>` (design.md "Diagnostics").

Served by `workspace/textDocumentContent`. A client without it gets its diagnostics on a read-only copy in the state directory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from standfast.editor import uris
from standfast.editor.clients import Client, Clients
from standfast.errors import NotFound
from standfast.session.sessions import Sessions


class Transcripts:
    """Which URI a client knows a transcript by, and the copies for those that cannot read virtual documents."""

    def __init__(self, sessions: Sessions, directory: Path | None) -> None:
        self._sessions = sessions
        self._directory = directory

    async def text(self, uri: str) -> str | None:
        """The text of a transcript document, None if the URI is none or names no session."""
        session_id = uris.session_of_document(uri)
        if session_id is None:
            return None
        try:
            return await self._sessions.transcript(session_id)
        except NotFound:
            return None

    def shown_as(self, uri: str, client: Client) -> str:
        """The URI under which a client gets a document's diagnostics. A key that is a path becomes a file URI."""
        session_id = uris.session_of_document(uri)
        if session_id is None:
            return uris.uri_of(uri) if uri.startswith("/") else uri
        if self._directory is None or client.can("workspace.text_document_content"):
            return uri
        return uris.uri_of(str(self._copy(session_id)))

    def key_of(self, uri: str) -> str:
        """The document that a URI of a client means; a copy means its session."""
        path = uris.path_of(uri)
        if path is not None and self._directory is not None:
            copy = Path(path)
            if copy.parent == self._directory and copy.suffix == ".md":
                return uris.session_document(copy.stem)
        return uris.key_of(uri)

    async def refresh(self, documents: Iterable[str], clients: Clients) -> None:
        """Write the copies of these documents, if a client needs them."""
        if self._directory is None or all(client.can("workspace.text_document_content") for client in clients):
            return
        for uri in dict.fromkeys(documents):
            session_id = uris.session_of_document(uri)
            text = await self.text(uri) if session_id is not None else None
            if session_id is not None and text is not None:
                await asyncio.to_thread(_write_read_only, self._copy(session_id), text)

    def _copy(self, session_id: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{Path(session_id).name}.md"


def _write_read_only(path: Path, text: str) -> None:
    """Replace a copy in one step. A copy that cannot be written is done without: it is a convenience."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except OSError:
        return
