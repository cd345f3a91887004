"""The person's word over a folder, and where it is asked for anew (issue G.1, e10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from standfast.errors import StandfastError
from standfast.projections.rows import SessionRow
from standfast.session.binding import relate
from standfast.session.surroundings import Folders
from standfast.session.trust import Lapse, lapse, look, take, version_of
from standfast.session.workspace import to_path
from standfast.store.base import Store


async def give(store: Store, workspace_uri: str, *, trusted: bool, version: str | None) -> None:
    """Trust a folder as it is, or no longer. `version`: what the person was shown (`Lapse.version`).

    Raises StandfastError `FileChanged` where something else would act by now.
    """
    what = await take(to_path(workspace_uri)) or ""
    if trusted and version is not None and version != version_of(what):
        raise StandfastError(
            "FileChanged",
            "What comes with the folder changed once more since you were asked. Nothing of it acts, and nothing was trusted: "
            "look at what changed, then choose again.",
        )
    await store.set_trusted(workspace_uri, what, trusted=trusted)


async def lapsed(store: Store, folders: Folders, row: SessionRow) -> Lapse | None:
    """What the person is asked about anew in the session's folder; nothing is looked at in a folder that they never trusted.
    Where it cannot be looked at now, nothing acts either, and the next look tells."""
    recorded = await store.trusted(row.workspace_uri)
    if recorded is None or row.status != "active" or folders.untrusted(row.workspace_uri):
        return None
    try:
        return lapse(row.workspace_uri, recorded, await asyncio.to_thread(look, to_path(row.workspace_uri)))
    except OSError:
        return None


async def sessions_of_lapsed(store: Store, folders: Folders, workspace_uris: Sequence[str]) -> list[str]:
    """The newest session of each of these folders whose trust lapsed: there the person is asked anew."""
    found: list[str] = []
    for uri in workspace_uris:
        related = (await relate(store, uri)).all()
        newest, _ = await store.sessions(workspace_uris=related, status="active", limit=1)
        found += [row.session_id for row in newest if await lapsed(store, folders, row) is not None]
    return found
