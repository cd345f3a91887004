"""Code lens on files that a run changed: review, undo (design.md "Editor surface")."""

from __future__ import annotations

from lsprotocol import types

from standfast.editor import uris
from standfast.editor.clients import Client
from standfast.errors import StandfastError
from standfast.session.sessions import Sessions

_SESSIONS_MAX = 5
"""The newest sessions of a folder that are looked at."""


async def lenses(sessions: Sessions, client: Client, uri: str) -> list[types.CodeLens]:
    """The lenses of one document: for each of the newest sessions whose latest run changed it, review and undo."""
    path = uris.path_of(uri)
    if path is None:
        return []
    found: list[types.CodeLens] = []
    folders = dict.fromkeys(spelt for folder, spelt in client.folders.items() if uris.within(path, folder))
    for folder in folders:
        views, _ = await sessions.list(workspace_uri=folder, limit=_SESSIONS_MAX)
        for view in views:
            run_id = view.row.last_run_id
            if run_id is not None and await _changed(sessions, run_id, path):
                found += _lenses(run_id, uri, view.row.title)
    return found


async def _changed(sessions: Sessions, run_id: str, path: str) -> bool:
    try:
        return any(uris.path_of(file.uri) == path for file in await sessions.diff(run_id=run_id))
    except StandfastError:
        return False


def _lenses(run_id: str, uri: str, title: str) -> list[types.CodeLens]:
    top = types.Range(types.Position(0, 0), types.Position(0, 0))
    about = f" ({title})" if title else ""
    review = types.Command(
        title=f"Standfast changed this file{about}: review",
        command="standfast.diff.show",
        arguments=[{"runId": run_id, "uri": uri}],
    )
    undo = types.Command(title="undo the run", command="standfast.run.undo", arguments=[{"runId": run_id}])
    return [types.CodeLens(range=top, command=review), types.CodeLens(range=top, command=undo)]
