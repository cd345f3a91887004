"""Which places of a workspace a confined command may read but not change: git's own, and files that start programs (ATK-18, 19, e09).

The same names as `files/protected.py`, found on the disk by one bounded walk before each command.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from standfast.files.protected import STARTS_PROGRAMS, is_git, plain_name
from standfast.shortage import let_through

FOLDERS_MAX = 4_000
"""Directories that are looked into; in what lies beyond only the commonest names at the top are protected."""
_UNSEEN = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", "site-packages", ".mypy_cache", ".hypothesis"}
)
"""Installed packages and caches: whole trees that are no part of the project, and that tools must be able to write."""
_DIRECTORIES = frozenset(pattern.rpartition("/")[0] for pattern, _ in STARTS_PROGRAMS if "/" in pattern)
_FILES = frozenset(pattern for pattern, _ in STARTS_PROGRAMS if "/" not in pattern and "*" not in pattern)
_SUFFIX = ".code-workspace"
NEW: dict[str, tuple[str, ...]] = {
    ".vscode": (".vscode", ".vscode-server", ".vscode-oss", ".config/Code", ".config/VSCodium", ".local/share/code-server",
                ".cursor-server", ".config/Cursor", ".windsurf-server", ".config/Windsurf"),
    ".idea": (".config/JetBrains", ".local/share/JetBrains", ".cache/JetBrains"),
    ".zed": (".config/zed", ".local/share/zed", ".zed_server"),
    ".claude": (".claude", ".config/claude"),
    ".cursor": (".cursor", ".cursor-server", ".config/Cursor"),
    ".codex": (".codex",),
    ".gemini": (".gemini",),
    ".standfast": (),
    ".mcp.json": (),
}  # fmt: skip
"""Acted upon by an open editor or agent as soon as they appear → where that keeps its own things beneath the home. Where it is used,
an empty directory stands in while a command runs; where not, what a command makes is set aside after it."""


class Protected(NamedTuple):
    """Absolute paths."""

    read_only: tuple[str, ...]
    """What exists."""
    stand_ins: tuple[str, ...]
    """Directories that are to be there, empty and read-only, because they do not exist yet (or are others' stand-ins)."""
    set_aside: tuple[str, ...]
    """What does not exist, and is not to stay if a command makes it."""


def protected(workspace: Path, home: str) -> Protected:
    """Walk the workspace (links are not followed). `home`: the person's, which shows what programs they use."""
    found: list[str] = []
    waiting, looked = [str(workspace)], 0
    while waiting and looked < FOLDERS_MAX:
        looked += 1
        waiting += _look(waiting.pop(0), found)
    missing = [name for name in NEW if not os.path.lexists(workspace / name)]
    used = [name for name in missing if any(os.path.exists(os.path.join(home, place)) for place in NEW[name])]
    empty = [path for path in found if os.path.basename(path) in NEW and _is_empty(path)]
    return Protected(
        tuple(path for path in found if path not in empty),
        (*(str(workspace / name) for name in used), *empty),
        tuple(str(workspace / name) for name in missing if name not in used),
    )


def _look(directory: str, found: list[str]) -> list[str]:
    """Note what is protected in a directory; returns the directories to look into."""
    inner: list[str] = []
    try:
        entries = list(os.scandir(directory))
    except OSError as error:
        let_through(error)
        return inner
    above = plain_name(os.path.basename(directory))
    for entry in entries:
        name = entry.name.casefold() if entry.name.isascii() else plain_name(entry.name)
        name = name.rstrip(". ")
        is_directory = entry.is_dir(follow_symlinks=False)
        # "git" first: the walk precedes each command, and nine tenths of its time went into asking this of every file
        if ("git" in name and is_git(name)) or (
            is_directory and (name in _DIRECTORIES or f"{above}/{name}" in _DIRECTORIES)
        ):
            found.append(entry.path)
        elif is_directory and name not in _UNSEEN:
            inner.append(entry.path)
        elif not is_directory and (name in _FILES or name.endswith(_SUFFIX)) and not entry.is_symlink():
            found.append(entry.path)
    return inner


def _is_empty(path: str) -> bool:
    try:
        return os.path.isdir(path) and not os.listdir(path)
    except OSError as error:
        let_through(error)
        return False
