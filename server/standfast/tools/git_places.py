"""Where a workspace's git directory is, if not in it: linked worktrees and submodules. Asked of the files, never of git.

A `.git` file can name any directory (a hostile one would name `~/.ssh`), so its target counts only if that names the
workspace in turn, as git writes both.
"""

from __future__ import annotations

import re
from pathlib import Path

from standfast.shortage import let_through

_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)
EXECUTABLE_PARTS = ("hooks", "config", "config.worktree", "info/attributes", "modules")
"""In a git directory: what makes git start programs. Read-only also for git itself."""


def git_directory(workspace: Path) -> Path | None:
    """The git directory that the workspace's `.git` is or rightly names; for a linked worktree the common one."""
    entry = workspace / ".git"
    try:
        if entry.is_symlink():
            return None
        if entry.is_dir():
            return entry
        named = (workspace / entry.read_text("utf-8", "replace").removeprefix("gitdir:").strip()).resolve()
        back = named / "gitdir"
        if back.is_file():
            if Path(back.read_text("utf-8", "replace").strip()).resolve() != entry.resolve():
                return None
            return (named / (named / "commondir").read_text("utf-8", "replace").strip()).resolve()
        found = _WORKTREE.search((named / "config").read_text("utf-8", "replace"))
        return named if found and (named / found[1]).resolve() == workspace.resolve() else None
    except OSError as error:
        let_through(error)
        return None


def executable_parts(git: Path) -> tuple[str, ...]:
    """What exists of them."""
    return tuple(str(git / name) for name in EXECUTABLE_PARTS if (git / name).exists())
