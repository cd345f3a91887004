"""Which folder a session belongs to now: present, missing, moved or replaced, and which sessions belong to a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standfast.errors import WorkspaceError
from standfast.projections.rows import SessionRow
from standfast.session.views import SessionView, WorkspaceState
from standfast.session.workspace import Identity, glance, identify, to_path, to_uri
from standfast.store.base import Store


@dataclass(frozen=True, slots=True)
class Related:
    """The recorded folders that have to do with an asked one, by their uris as recorded."""

    same: list[str] = field(default_factory=list[str])
    """The folder itself, under whatever spelling or link."""
    moved: list[str] = field(default_factory=list[str])
    """Gone, and the asked folder has their identity."""
    worktrees: dict[str, str] = field(default_factory=dict[str, str])
    """Other worktrees of the same repository → their names."""

    def all(self) -> list[str]:
        return [*self.same, *self.moved, *self.worktrees]


def state_of(workspace_uri: str, recorded: dict[str, Any], found: Identity | None) -> WorkspaceState:
    """Pure: what a folder is to a session that recorded an identity."""
    if found is None:
        return "missing"
    return "present" if not recorded or found.matches(recorded) else "replaced"


async def look(row: SessionRow) -> tuple[WorkspaceState, Path]:
    """Look at a session's own folder, quickly: git is asked only where the inode says that it is another one."""
    path = to_path(row.workspace_uri)
    found = await asyncio.to_thread(glance, path)
    state = state_of(row.workspace_uri, row.identity, found)
    if state == "replaced" and row.identity.get("rootCommit"):
        state = state_of(row.workspace_uri, row.identity, await identify(path))
    return state, path


async def relate(store: Store, workspace_uri: str) -> Related:
    """Compare a folder with all recorded ones. One stat a recorded folder; git is asked about the asked one only."""
    path = to_path(workspace_uri)
    asked = await identify(path)
    recorded = [(uri, json.loads(identity)) for uri, identity in await store.workspaces()]
    return await asyncio.to_thread(_relate, path, asked, recorded)


def _relate(path: Path, asked: Identity | None, recorded: Sequence[tuple[str, dict[str, Any]]]) -> Related:
    related = Related()
    real = path.resolve()
    for uri, identity in dict(((uri, json.dumps(known)), (uri, known)) for uri, known in recorded).values():
        try:
            other = to_path(uri)
        except WorkspaceError:
            continue
        found = glance(other)
        if other == path or other.resolve() == real or (found and asked and found.is_folder(asked.to_json())):
            _add(related.same, uri)
        elif asked is not None and found is None and asked.matches(identity):
            _add(related.moved, uri)
        elif (
            asked is not None
            and found is not None
            and asked.common_git
            and asked.common_git == identity.get("commonGit")
        ):
            related.worktrees.setdefault(uri, other.name)
    return related


def _add(uris: list[str], uri: str) -> None:
    if uri not in uris:
        uris.append(uri)


async def view(row: SessionRow, related: Related | None = None, asked_uri: str | None = None) -> SessionView:
    """A session with the state of its folder; `related` and `asked_uri` as a list was asked for."""
    state, _ = await look(row)
    if related is not None and row.workspace_uri in related.moved and state != "present":
        return SessionView(row, "moved", candidate_uri=asked_uri)
    worktree = related.worktrees.get(row.workspace_uri) if related is not None else None
    return SessionView(row, state, worktree=worktree)


async def require(row: SessionRow, known: Sequence[str] = ()) -> Path:
    """The session's folder for a run, or the error that says why there is none and what to do (R2.4).

    `known`: folders that editors have open now; one of them may be where the folder went.
    Raises WorkspaceError: `WorkspaceNotFound`, `WorkspaceMoved {candidateUri}`, `WorkspaceReplaced`.
    """
    state, path = await look(row)
    if state == "present":
        return path
    candidate = await _candidate(row, known)
    if candidate is not None:
        raise WorkspaceError(
            "WorkspaceMoved",
            f"The session's folder {path} seems to have moved to {to_path(candidate)}. Nothing was run. "
            "Rebind the session to the new folder to go on.",
            candidateUri=candidate,
        )
    if state == "replaced":
        raise WorkspaceError(
            "WorkspaceReplaced",
            f"The folder at {path} is not the one that the session worked in. Nothing was run. "
            "Rebind the session to it if that is what you want.",
            workspaceUri=to_uri(path),
        )
    raise WorkspaceError(
        "WorkspaceNotFound",
        f"The session's folder {path} is gone. Its history is kept and can be read. "
        "Put the folder back, or rebind the session to where it is now.",
        workspaceUri=to_uri(path),
    )


async def _candidate(row: SessionRow, known: Sequence[str]) -> str | None:
    for uri in known:
        if uri != row.workspace_uri:
            found = await identify(to_path(uri))
            if found is not None and row.identity and found.matches(row.identity):
                return uri
    return await asyncio.to_thread(_beside, row)


def _beside(row: SessionRow) -> str | None:
    """A renamed folder is most often still beside its old place."""
    parent = to_path(row.workspace_uri).parent
    try:
        folders = [folder for folder in sorted(parent.iterdir()) if folder.is_dir()][:200]
    except OSError:
        return None
    for folder in folders:
        found = glance(folder)
        if found is not None and row.identity and found.is_folder(row.identity):
            return to_uri(folder)
    return None
