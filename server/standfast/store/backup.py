"""Copies of the store that are whole at one moment (`VACUUM INTO`), and the way back to one of them.

Way back: stop the daemon, then `standfast doctor --restore BACKUP` (`restore_backup`). The store that was there is kept as
`*.replaced-<ms>`.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from standfast.errors import StoreError
from standfast.store import schema
from standfast.store.faults import store_error

KEEP = 3
"""Rotating backups kept; those made before a migration are never removed."""


def copy_to(connection: sqlite3.Connection, target: Path) -> None:
    """Copy the database behind the connection to `target`, which appears whole or not at all. Raises sqlite3.Error."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    # SQLite takes an empty file as it is, mode included; this one is not yet a database.
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection.execute("VACUUM INTO ?", (str(part),))
    _sync(part)
    part.rename(target)
    _sync(target.parent)


def migration_backup(path: Path, version: int, now_ms: int) -> Path:
    """Where the copy of a store of an older version goes before it is migrated."""
    return path.parent / "backups" / f"before-migration-v{version}-{now_ms}.db"


def rotate(connection: sqlite3.Connection, directory: Path, now_ms: int) -> Path:
    """Make a backup and remove all but the newest `KEEP`. Raises sqlite3.Error."""
    target = directory / f"standfast-{now_ms:015d}.db"
    copy_to(connection, target)
    for old in sorted(directory.glob("standfast-*.db"))[:-KEEP]:
        old.unlink()
    return target


def newest_ms(directory: Path) -> int | None:
    """When the newest rotating backup was made; None if there is none."""
    times = [name.stem.removeprefix("standfast-") for name in directory.glob("standfast-*.db")]
    return max((int(time) for time in times if time.isdigit()), default=None)


def restore_backup(path: Path, backup: Path, now_ms: int) -> Path | None:
    """Put a backup in the store's place; returns where the store that was there is kept, None if there was none.

    The daemon must not run (the caller holds its lock). Raises StoreError if the backup is not a whole store of ours:
    then nothing was changed.
    """
    fresh = path.with_name(path.name + ".restoring")
    try:
        with closing(
            sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as source:
            if schema.version(source) == 0 or source.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                raise StoreError(
                    "BackupDamaged",
                    f"{backup} is not a whole backup of a store. Nothing was changed. Take another one.",
                )
            fresh.unlink(missing_ok=True)
            copy_to(source, fresh)
        kept = _set_aside(path, now_ms)
        fresh.rename(path)
        _sync(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise store_error(error) from error
    return kept


def _set_aside(path: Path, now_ms: int) -> Path | None:
    """Move the store away with what SQLite keeps beside it (a WAL left behind would be taken for the backup's)."""
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.replaced-{now_ms}")
    for end in ("", "-wal", "-shm"):
        name = path.with_name(path.name + end)
        if name.exists():
            name.rename(kept.with_name(kept.name + end))
    return kept


def _sync(path: Path) -> None:
    """fsync a file that no connection is open on, or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
