"""Locks that the kernel releases: flock on a file that is still the one at its path (design.md "Durability", F13, d14).

What stands in the file is for people only; nobody decides by it. The descriptor is never inherited (CLOEXEC): an
inherited one would keep the lock alive after its owner's death.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from standfast.errors import StandfastError
from standfast.shortage import let_through

RETRY_S = 0.02


@dataclass(slots=True)
class Lock:
    """A lock that this process holds until `release` or its death."""

    path: Path
    fd: int

    def still_ours(self) -> bool:
        """False when the file at the path is another one, or gone: then somebody else can hold "the" lock too."""
        return _same_file(self.fd, self.path)

    def sign(self, **facts: object) -> None:
        """Write who holds it, for people who look."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, json.dumps(facts).encode() + b"\n", 0)

    def release(self) -> None:
        os.close(self.fd)


def take(path: Path, *, wait_s: float) -> Lock | None:
    """Take the lock, waiting at most `wait_s` seconds; None if another process holds it all the while.

    Raises StandfastError (`PlaceNotUsable`) where the file cannot be opened.
    """
    until = time.monotonic() + wait_s
    while True:
        fd = _open(path)
        if _try(fd):
            if _same_file(fd, path):
                return Lock(path, fd)
            os.close(fd)  # deleted or replaced between open and lock: that lock guards nothing
            continue
        os.close(fd)
        if time.monotonic() >= until:
            return None
        time.sleep(RETRY_S)


def held(path: Path) -> bool:
    """Whether some process holds the lock now. Looks by taking it for an instant."""
    lock = take(path, wait_s=0)
    if lock is None:
        return True
    lock.release()
    return False


def signature(path: Path) -> dict[str, object]:
    """What the holder wrote; empty where nothing readable stands there. For messages, never for decisions."""
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        let_through(error)
        raise StandfastError(
            "PlaceNotUsable",
            f"{path} cannot be opened ({error.strerror}). Nothing was started. Make its directory writable, or set STANDFAST_HOME.",
        ) from error


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _same_file(fd: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except OSError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
