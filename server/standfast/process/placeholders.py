"""Directories that start programs and are not there yet (`.vscode`, `.claude`, …; ATK-19): kept from a confined command.

Stand-ins: where the person has the program that would act on one at once, an empty directory stands in for it, read-only for the
command (a mount needs something to lie on). It is there only while a command runs: whoever ends last removes it. All of a
workspace's commands share one lock, held by the supervisor and by the sandbox itself, so that no mount loses its ground; its file
names what was made, so that `clear` removes also what a killed supervisor left.
Others are set aside after the command, under a name that nothing acts upon. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence

LOCK_FD = 8
"""Where bubblewrap is told to hold the lock; the command itself does not get it."""


def hold(lock: str, directories: Sequence[str]) -> int:
    """Make what is missing and keep it there until `let_go`. Returns a descriptor, -1 where there is nothing to hold."""
    if not directories:
        return -1
    os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)
    names = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    handle = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(handle, fcntl.LOCK_SH)
    for directory in directories:
        with contextlib.suppress(OSError):
            if not os.path.lexists(directory):
                os.write(names, os.fsencode(directory) + b"\0")  # first: a kill between the two must not lose it
                os.mkdir(directory, 0o755)
    os.close(names)
    return handle


def hand_on(handle: int) -> None:
    """In the process that becomes bubblewrap: put the lock where it looks for it."""
    if handle >= 0:
        os.dup2(handle, LOCK_FD)


def let_go(lock: str, handle: int) -> None:
    """Need them no more; remove them if nobody else does."""
    if handle >= 0:
        os.close(handle)
        _remove(lock)


def clear(directory: str) -> None:
    """Remove what killed supervisors left, by all locks of a directory. What a command still needs stays."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(directory):
            _remove(entry.path)


def set_aside(paths: Sequence[str], mark: str) -> list[str]:
    """Rename what a command made where nothing was. Returns the new names. What git knows came by git (somebody pulled), and stays."""
    found: list[str] = []
    for path in [one for one in paths if os.path.lexists(one)]:
        aside = f"{path}.set-aside-{mark}"
        with contextlib.suppress(OSError):
            if not os.path.lexists(aside) and not _in_git(path):
                os.rename(path, aside)
                found.append(aside)
    return found


def _in_git(path: str) -> bool:
    """Whether the index names it. A confined command cannot write the index."""
    directory, name = os.path.split(path)
    try:
        with open(os.path.join(directory, ".git", "index"), "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return os.fsencode(name) in file.read()
    except OSError:
        return False


def _remove(lock: str) -> None:
    """Remove what a lock names, unless somebody holds it. A directory with something in it is somebody's, and stays."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for directory in set(os.pread(handle, os.fstat(handle).st_size, 0).split(b"\0")):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        os.ftruncate(handle, 0)
    os.close(handle)
