"""The binding of a session to a folder (R2, design.md "Workspace"): which folder it is, wherever it has gone.

A folder's identity is recorded at binding: device, inode and birth time, and the root commit of its git history. Nothing is
assumed from it: a folder that seems to be a moved one is offered, never taken.
"""

from __future__ import annotations

import asyncio
import ctypes
import ctypes.util
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from standfast.errors import WorkspaceError

GIT_TIMEOUT_S = 2.0


def to_path(uri: str) -> Path:
    """A file URI as an absolute path. Raises WorkspaceError (`WorkspaceNotFound`) for what is none."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # a bracket that is not closed in the place of the host
        parts = urlsplit("")
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise WorkspaceError(
            "WorkspaceNotFound", f"{uri} is not the URI of a local folder. Nothing was changed. Give a file:// URI."
        )
    return Path(os.path.normpath(path))


FOLDS_CASE = sys.platform in ("darwin", "win32")
"""Whether file systems here usually take `A` and `a` for one name. (Where both exist, their inodes tell them apart.)"""


def same_path(one: Path, other: Path, *, folds: bool = FOLDS_CASE) -> bool:
    """Whether two spellings name one path: a drive's letter always folds, the rest if the file system does (a26). Pure."""
    return _spelling(one, folds=folds) == _spelling(other, folds=folds)


def _spelling(path: Path, *, folds: bool) -> str:
    text = str(path)
    if re.match(r"/[A-Za-z]:", text):
        text = text[:2].lower() + text[2:]
    return text.casefold() if folds else text


def to_uri(path: Path) -> str:
    """An absolute path as a file URI."""
    return "file://" + quote(os.fsencode(path), safe="/-._~")


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a folder from another. `birth_ns` 0 and `root_commit` None: not known."""

    device: int
    inode: int
    birth_ns: int
    root_commit: str | None = None
    common_git: str | None = None
    """The repository's common git directory: the same in all its worktrees."""

    def to_json(self) -> dict[str, Any]:
        return {
            "device": self.device, "inode": self.inode, "birthNs": self.birth_ns,
            "rootCommit": self.root_commit, "commonGit": self.common_git,
        }  # fmt: skip

    def is_folder(self, recorded: dict[str, Any]) -> bool:
        """The very folder: same inode and birth time."""
        return bool(recorded) and self.inode == recorded.get("inode") and self.birth_ns == recorded.get("birthNs")

    def matches(self, recorded: dict[str, Any]) -> bool:
        """The folder itself, or the same repository's history (a clone in its place)."""
        commit = recorded.get("rootCommit")
        return self.is_folder(recorded) or (commit is not None and commit == self.root_commit)


async def identify(path: Path) -> Identity | None:
    """The whole identity of a folder as it is now, None if there is none. Asks git for 2 s at most; runs nothing of its own."""
    found = await asyncio.to_thread(glance, path)
    if found is None or found.common_git is None:
        return found
    return replace(found, root_commit=await _root_commit(path))


def glance(path: Path) -> Identity | None:
    """Identity without the root commit: a few system calls, cheap enough for lists."""
    try:
        found = path.stat()
        if not path.is_dir():
            return None
        return Identity(found.st_dev, found.st_ino, _birth_ns(path), common_git=_common_git(path))
    except OSError:
        return None


def _common_git(path: Path) -> str | None:
    """The common git directory of a worktree's top folder, by git's own files (gitrepository-layout); None for any other folder."""
    entry = path / ".git"
    if entry.is_dir():
        return str(entry.resolve())
    if not entry.is_file():
        return None
    target = path / entry.read_text(errors="replace").removeprefix("gitdir:").strip()
    common = target / "commondir"
    return str((target / common.read_text(errors="replace").strip() if common.is_file() else target).resolve())


async def _root_commit(path: Path) -> str | None:
    return await _git(path, "rev-list", "--max-parents=0", "--max-count=1", "HEAD")


async def _git(path: Path, *args: str) -> str | None:
    environ = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environ |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        process = await asyncio.create_subprocess_exec(
            "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(path), *args,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=environ,
        )  # fmt: skip
    except OSError:
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), GIT_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return output.decode(errors="replace").strip() or None if process.returncode == 0 else None


# -- birth time: Python's stat does not give it on Linux ---------------------------------------------------------------

_STATX_BTIME = 0x800
_BTIME_OFFSET = 80
"""Of `stx_btime` in `struct statx` (linux/stat.h): two 16-byte stamps before it from byte 64 on."""


def _birth_ns(path: Path) -> int:
    statx = getattr(_libc, "statx", None)
    if statx is None:
        return int(getattr(path.stat(), "st_birthtime", 0) * 1e9)
    buffer = ctypes.create_string_buffer(256)
    if statx(-100, os.fsencode(path), 0, _STATX_BTIME, buffer) != 0:
        return 0
    if not int.from_bytes(buffer.raw[0:4], "little") & _STATX_BTIME:
        return 0
    seconds = int.from_bytes(buffer.raw[_BTIME_OFFSET : _BTIME_OFFSET + 8], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(buffer.raw[_BTIME_OFFSET + 8 : _BTIME_OFFSET + 12], "little")


_libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
