"""What weakens the store without breaking it, as codes and sentences (I13): the disk, the filesystem, SQLite, fsync.

Only looks and says; `sqlite.py` keeps the answers in the `degraded` table and tells whoever asked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from standfast.errors import StoreError

FREE_MIN = 64 * 1024 * 1024
"""Bytes free below which the disk counts as nearly full."""

LOG_MAX = 64 * 1024 * 1024
"""Bytes of the write-ahead log above which something keeps SQLite from moving it into the database (F10)."""

BALLAST = 1024 * 1024
"""Bytes kept back so that an interruption can still be recorded on a full disk (F6)."""

SQLITE_MIN = (3, 39, 2)
"""Older ones can be made to write out of bounds by huge texts (CVE-2022-35737). The WAL-reset fault of later releases needs
two connections that write or checkpoint; here only one ever does."""

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "fuse.sshfs", "glusterfs", "lustre"})


@dataclass(frozen=True, slots=True)
class Degraded:
    """One weakness: a fixed code and a sentence that says what is at risk and what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Where the facts come from; tests put others in."""

    filesystem: Callable[[Path], str]
    free_bytes: Callable[[Path], int]
    sqlite_version: tuple[int, int, int] = sqlite3.sqlite_version_info
    preload: str = ""

    @classmethod
    def real(cls) -> Probe:
        return cls(filesystem_type, free_bytes, preload=os.environ.get("LD_PRELOAD", ""))


def filesystem_type(path: Path) -> str:
    """The type of the filesystem that holds `path`, in the system's words."""
    mounts = [part for part in psutil.disk_partitions(all=True) if path.absolute().is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else ""


def free_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def at_open(directory: Path, probe: Probe) -> list[Degraded]:
    """The weaknesses that do not change while the store is open."""
    found: list[Degraded] = []
    kind = probe.filesystem(directory)
    if kind in NETWORK:
        found.append(
            Degraded(
                "network-filesystem",
                f"The store lies on a network filesystem ({kind}), where locks and fsync cannot be relied on: a crash may "
                f"damage it. Move it to a local disk (STANDFAST_HOME).",
            )
        )
    if probe.sqlite_version < SQLITE_MIN:
        version = ".".join(map(str, probe.sqlite_version))
        found.append(
            Degraded("old-sqlite", f"SQLite {version} has known faults. Update Python or SQLite to 3.39.2 or later.")
        )
    if "eatmydata" in probe.preload:
        found.append(
            Degraded("fsync-off", "fsync is switched off (libeatmydata): a power cut may take back what was stored.")
        )
    return found


def disk(directory: Path, probe: Probe) -> Degraded | None:
    """Whether the disk is nearly full."""
    free = probe.free_bytes(directory)
    if free >= FREE_MIN:
        return None
    return Degraded(
        "disk-nearly-full",
        f"Only {free // (1024 * 1024)} MiB are free where the store lies. Nothing is lost yet; free some space soon.",
    )


def log_size(path: Path) -> Degraded | None:
    """Whether the write-ahead log of the store at `path` grows without end. Only looks at its size: nothing opens it."""
    try:
        size = path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return None
    if size < LOG_MAX:
        return None
    return Degraded(
        "log-grows",
        f"The store's write-ahead log has grown to {size // (1024 * 1024)} MiB: something has been reading the store for long. "
        "Nothing is lost. Close it (a database shell left open?), then the log is used anew.",
    )


def not_saving(error: StoreError) -> Degraded:
    """The last thing that should have been stored was not."""
    return Degraded("not-saving", f"Nothing is being saved: {error.message}")


class Ballast:
    """A file of `BALLAST` bytes beside the store, given up when the disk is full."""

    def __init__(self, path: Path, probe: Probe) -> None:
        self._path = path
        self._probe = probe

    def fill(self) -> None:
        """Put it there, if it is not and the disk has room for it."""
        if self._path.exists() or self._probe.free_bytes(self._path.parent) < 4 * BALLAST:
            return
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, bytes(BALLAST))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            return  # without it, a full disk records no interruption; nothing else changes

    def free(self) -> bool:
        """Give it up; False if it was not there."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def private(directory: Path) -> None:
    """Make the store's directory, or tighten it. Raises StoreError if it cannot be used."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory.stat().st_mode & 0o077 and os.access(directory, os.W_OK):
            directory.chmod(0o700)
    except OSError as error:
        raise StoreError(
            "StoreReadOnly", f"{directory} cannot be used ({error.strerror}). Nothing was changed. Make it writable."
        ) from error
