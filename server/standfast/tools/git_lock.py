"""An `index.lock` that our own dead git left behind: recognised, offered, removed on request. Anybody else's is never
touched (b05): removing a living lock corrupts the index."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import NamedTuple

from standfast.events.types import Target
from standfast.process.identity import read_stat
from standfast.process.judge import State
from standfast.process.launch import Commands
from standfast.shortage import let_through
from standfast.tools.base import Settlement, StartedCall, ToolContext
from standfast.tools.commands_base import VERDICTS, intent_command, not_available, record_directory

SLACK_MS = 1000
"""How far a file's time and ours may differ."""


class LeftLock(NamedTuple):
    """A lock that is ours to offer."""

    path: Path
    inode: int


def left_lock(workspace: Path, state: State) -> LeftLock | None:
    """The index lock of the workspace's repository, if our command made it and nothing that could hold it lives.

    Ours: it appeared while our command ran, and our command is gone. Nobody's: no process has it open, no git works here.
    """
    if state.found not in ("ended", "lost") or state.record is None:
        return None
    top = next((place for place in (workspace, *workspace.parents) if (place / ".git").exists()), None)
    path = _lock_path(top / ".git") if top else None
    if top is None or path is None:
        return None
    try:
        found = path.lstat()
    except OSError:
        return None
    made_at_ms = found.st_mtime_ns // 1_000_000
    until_ms = state.exit.ended_at_ms if state.exit else made_at_ms
    during = state.record.started_at_ms - SLACK_MS <= made_at_ms <= until_ms + SLACK_MS
    if not stat.S_ISREG(found.st_mode) or not during or _in_use(path, top):
        return None
    return LeftLock(path, found.st_ino)


async def with_lock(text: str, workspace: Path, state: State) -> str:
    """Evidence, with a left lock named where there is one."""
    lock = await asyncio.to_thread(left_lock, workspace, state)
    if lock is None:
        return text
    return f"{text} It left {lock.path} behind, which blocks every other git here; `removeLock` removes it."


async def remove_lock(commands: Commands, call: StartedCall, ctx: ToolContext) -> Settlement:
    """The recovery action `removeLock`. Raises NotAvailable where no lock is ours to remove."""
    state = await commands.state(record_directory(call, ctx))
    lock = await asyncio.to_thread(left_lock, ctx.workspace, state)
    if lock is None or not await asyncio.to_thread(_remove, lock):
        raise not_available("removeLock", "there is no index.lock that this call left and that nobody uses.")
    verdict = VERDICTS[state.found]
    command = intent_command(call.intents)
    text = f"{lock.path} was removed. It was left by git, which is gone."
    return Settlement(verdict, text, targets=(Target(command=command, verdict=verdict),))


def _remove(lock: LeftLock) -> bool:
    """Remove the lock that was looked at. False: it is gone, or another one stands there now."""
    try:
        if lock.path.lstat().st_ino != lock.inode:
            return False
        lock.path.unlink()
    except FileNotFoundError:
        return False
    return True


def _lock_path(entry: Path) -> Path | None:
    """`index.lock` of a `.git` directory, or of the one that a worktree's `.git` file names."""
    if entry.is_dir():
        return entry / "index.lock"
    try:
        text = entry.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return entry.parent / text.removeprefix("gitdir:").strip() / "index.lock" if text.startswith("gitdir:") else None


def _in_use(path: Path, top: Path) -> bool:
    """Whether a process has the lock open, or is a git at work in this repository. Unsure counts as yes."""
    resolved = str(path.resolve())
    for name in os.listdir("/proc") if Path("/proc/self").exists() else ():
        if name.isdigit() and (_opens(name, resolved) or _is_git_in(name, top)):
            return True
    return False


def _opens(pid: str, path: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{handle}") == path for handle in os.listdir(f"/proc/{pid}/fd"))
    except OSError as error:
        let_through(error)
        return False


def _is_git_in(pid: str, top: Path) -> bool:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        if not name.startswith("git"):
            return False
        here = Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError as error:
        let_through(error)
        return False
    found = read_stat(int(pid))
    return found is not None and found.state not in "ZX" and here.is_relative_to(top.resolve())
