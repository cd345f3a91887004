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
from standfast.session.workspace import Identity, glance, identify, same_path, to_path, to_uri
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
    """Compare a folder with all recorded ones: a few system calls each. Git is asked only where a recorded folder is gone."""
    path = to_path(workspace_uri)
    recorded = [(uri, json.loads(identity)) for uri, identity in await store.workspaces()]
    related, gone = await asyncio.to_thread(_relate, path, recorded)
    if any(identity.get("rootCommit") for _, identity in gone):
        asked = await identify(path)
        for uri, identity in gone:
            if asked is not None and asked.matches(identity):
                _add(related.moved, uri)
    return related


def _relate(
    path: Path, recorded: Sequence[tuple[str, dict[str, Any]]]
) -> tuple[Related, list[tuple[str, dict[str, Any]]]]:
    """What a glance tells, and the recorded folders that are gone and were not recognised by it."""
    related, gone = Related(), list[tuple[str, dict[str, Any]]]()
    asked, real = glance(path), path.resolve()
    for uri, identity in recorded:
        other = _path_or_none(uri)
        found = glance(other) if other is not None else None
        if other is None:
            continue
        if same_path(other, path) or other.resolve() == real or (found and asked and found.is_folder(asked.to_json())):
            _add(related.same, uri)
        elif found is None and asked is not None and asked.is_folder(identity):
            _add(related.moved, uri)
        elif found is None:
            gone.append((uri, identity))
        elif asked is not None and asked.common_git and asked.common_git == found.common_git:
            related.worktrees.setdefault(uri, other.name)
    return related, gone


def _path_or_none(uri: str) -> Path | None:
    try:
        return to_path(uri)
    except WorkspaceError:
        return None


def _add(uris: list[str], uri: str) -> None:
    if uri not in uris:
        uris.append(uri)


async def view(row: SessionRow) -> SessionView:
    """A session with the state of its folder."""
    state, _ = await look(row)
    return SessionView(row, state)


async def views(rows: Sequence[SessionRow], related: Related | None, asked_uri: str | None) -> list[SessionView]:
    """Sessions of a list, as seen from the folder that it was asked for. Each recorded folder is looked at once."""
    states: dict[str, WorkspaceState] = {}
    for row in rows:
        key = f"{row.workspace_uri} {json.dumps(row.identity)}"
        if key not in states:
            states[key] = (await look(row))[0]
    return [
        _seen_from(row, states[f"{row.workspace_uri} {json.dumps(row.identity)}"], related, asked_uri) for row in rows
    ]


def _seen_from(row: SessionRow, state: WorkspaceState, related: Related | None, asked_uri: str | None) -> SessionView:
    if related is None:
        return SessionView(row, state)
    if row.workspace_uri in related.moved and state != "present":
        return SessionView(row, "moved", candidate_uri=asked_uri)
    return SessionView(row, state, worktree=related.worktrees.get(row.workspace_uri))


async def require(row: SessionRow, known: Sequence[str] = ()) -> Path:
    """The session's folder for a run, or the error that says why there is none and what to do (R2.4).

    `known`: folders that editors have open now; one of them may be where the folder went.
    Raises WorkspaceError: `WorkspaceNotFound`, `WorkspaceMoved {candidateUri}`, `WorkspaceReplaced {candidateUri?}`.
    """
    state, path = await look(row)
    if state == "present":
        return path
    candidates = await _candidates(row, known)
    places = " or ".join(str(to_path(uri)) for uri in candidates)
    offered = {"candidateUri": candidates[0], "candidateUris": candidates} if candidates else {}
    if state == "replaced":
        there = f", or to {places}, where the one it worked in seems to be now" if candidates else ""
        raise WorkspaceError(
            "WorkspaceReplaced",
            f"The folder at {path} is not the one that the session worked in. Nothing was run. "
            f"Rebind the session to it if that is what you want{there}.",
            workspaceUri=to_uri(path),
            **offered,
        )
    if candidates:
        raise WorkspaceError(
            "WorkspaceMoved",
            f"The session's folder {path} seems to have moved to {places}. Nothing was run. "
            "Rebind the session to the new folder to go on.",
            **offered,
        )
    raise WorkspaceError(
        "WorkspaceNotFound",
        f"The session's folder {path} is gone. Its history is kept and can be read. "
        "Put the folder back, or rebind the session to where it is now.",
        workspaceUri=to_uri(path),
    )


async def _candidates(row: SessionRow, known: Sequence[str]) -> list[str]:
    """Where the folder may be now: the very folder first, then those with the same repository's history (a copy, a clone)."""
    if not row.identity:
        return []
    beside = await asyncio.to_thread(_beside, row)
    itself, alike = [beside] if beside is not None else [], list[str]()
    for uri in known:
        found = await identify(to_path(uri)) if uri != row.workspace_uri else None
        if found is not None and found.matches(row.identity):
            _add(itself if found.is_folder(row.identity) else alike, uri)
    return [*itself, *(uri for uri in alike if uri not in itself)]


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
