"""Files of a workspace for @-completion: those whose path holds the query's letters in order, best first (design.md `workspace/files`)."""

from __future__ import annotations

import asyncio
import heapq
from pathlib import Path

from standfast.files.listing import Walk
from standfast.files.paths import Root


async def complete(folder: Path, query: str, limit: int) -> list[str]:
    """Relative paths, gitignore respected. Raises WorkspaceError (`WorkspaceNotFound`)."""
    return await asyncio.to_thread(_complete, folder, query, limit)


def _complete(folder: Path, query: str, limit: int) -> list[str]:
    wanted = query.casefold()
    with Root(folder) as root:
        files = (found.path for found in Walk(root).below() if found.kind == "file")
        fitting = ((rank, path) for path in files if (rank := fit(wanted, path)) is not None)
        return [path for _, path in heapq.nsmallest(limit, fitting)]


def fit(wanted: str, path: str) -> tuple[int, int] | None:
    """How well a path fits, smaller is better; None if it does not. In the name before in the path, whole before scattered."""
    folded = path.casefold()
    name = folded.rpartition("/")[2]
    if wanted in name:
        return (0 if name.startswith(wanted) else 1, len(path))
    if wanted in folded:
        return (2, len(path))
    letters = iter(folded)
    return (3, len(path)) if all(letter in letters for letter in wanted) else None
