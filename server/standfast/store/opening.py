"""Everything that must be settled before the store is used: whose file it is, its version, its health, its modes.

Plain blocking code, run once in a thread before any other connection exists. The order matters: nothing is written before
the file is known to be ours, not newer than we are, and whole. Nothing but SQLite opens the database file (POSIX would drop
SQLite's locks when we closed it); the one exception creates it, with `O_EXCL`, when no connection can exist.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from standfast.clock import Clock
from standfast.errors import StoreError
from standfast.store import schema
from standfast.store.backup import copy_to, migration_backup
from standfast.store.cold import forgiving
from standfast.store.faults import is_damage, store_error
from standfast.store.health import Degraded, private
from standfast.store.quarantine import move_away, salvage
from standfast.store.thread import uri_of

BUSY_TIMEOUT_S = 10.0
"""How long a statement waits for another program's lock (a13 wants at least 5 s)."""

CHECK_NOW_BYTES = 32 * 1024 * 1024
"""A store up to this size is checked whole before it is used (about 20 ms); a larger one while it is (F17)."""

WAL_PAGES = 4_000
"""SQLite's own checkpoint, should the writer never find a quiet moment."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the store may be used. `query`: URI parameters for reading. `read_only`: why, if it cannot be written."""

    query: str = "mode=ro"
    read_only: str | None = None
    notices: list[Degraded] = field(default_factory=list[Degraded])
    check_later: bool = False


def prepare(path: Path, clock: Clock, steps: Sequence[str] = schema.STEPS) -> Opening:
    """Make the store ready, or say how it can still be read.

    Creates, tightens modes, migrates (after a backup), or moves a damaged file away and salvages it.
    Raises StoreError: `StoreForeign` (not our file, or a link), `StoreReadOnly`, `StorageFull`, `StoreBusy`.
    """
    private(path.parent)
    if path.is_symlink():
        raise StoreError(
            "StoreForeign", f"{path} is a link. It was not followed and not touched. Put the store itself there."
        )
    try:
        if not path.exists() or path.stat().st_size == 0:
            return Opening(notices=_create(path, clock, steps))
        return _open(path, clock, steps)
    except (sqlite3.Error, OSError) as error:
        raise store_error(error) from error


def configure(connection: sqlite3.Connection) -> None:
    """Set up the write connection. Raises StoreError if SQLite does not give what durability rests on."""
    connection.text_factory = forgiving
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(
            "StoreUnsafe",
            f"SQLite cannot use its write-ahead log here (it says {mode!r}). Nothing was changed. "
            "Move the store to a local disk (STANDFAST_HOME).",
        )
    for pragma in (
        "synchronous=FULL",
        "trusted_schema=OFF",
        "cell_size_check=ON",
        "temp_store=MEMORY",
        f"wal_autocheckpoint={WAL_PAGES}",
        "journal_size_limit=16777216",
    ):
        connection.execute(f"PRAGMA {pragma}")
    set_config = getattr(connection, "setconfig", None)  # from Python 3.12 on
    if set_config is not None:
        set_config(getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE"), True)  # noqa: B009 - the stubs are 3.11's


def beside(path: Path) -> list[Path]:
    """The files that SQLite keeps beside the database."""
    return [path.with_name(path.name + end) for end in ("-wal", "-shm")]


def damage_marker(path: Path) -> Path:
    """There if the last daemon found damage while it ran: the next one looks at everything before it starts."""
    return path.with_name(path.name + ".damaged")


def _connect(path: Path, query: str) -> sqlite3.Connection:
    return sqlite3.connect(uri_of(path, query), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)


def _create(path: Path, clock: Clock, steps: Sequence[str]) -> list[Degraded]:
    """A new store; if there are signs of an earlier one, that is said (I8)."""
    notices: list[Degraded] = []
    log = beside(path)[0]
    if log.exists() and log.stat().st_size > 0:
        moved = move_away(path, clock.now_ms())
        notices.append(Degraded("store-missing", f"The store's file was gone. What lay beside it is kept as {moved}."))
    elif any((path.parent / "backups").glob("*.db")):
        text = f"The store's file was gone, so a new one was made. Backups are in {path.parent / 'backups'}."
        notices.append(Degraded("store-missing", text))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        path.chmod(0o600)
    with closing(_connect(path, "mode=rw")) as connection:
        configure(connection)
        schema.migrate(connection, steps)
    return notices


def _open(path: Path, clock: Clock, steps: Sequence[str]) -> Opening:
    writable = os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
    query = "mode=ro"
    if not writable and not any(name.exists() and name.stat().st_size for name in beside(path)):
        query = "mode=ro&immutable=1"  # without a WAL nothing can be missed; with one it would be (F8)
    check = path.stat().st_size <= CHECK_NOW_BYTES or damage_marker(path).exists()
    try:
        with closing(_connect(path, query)) as connection:
            found = schema.version(connection)
            if found <= len(steps) and check:
                _check(connection)
    except sqlite3.Error as error:
        if not is_damage(error) or not writable:
            raise
        return _replace(path, clock, steps, str(error))
    if found > len(steps):
        return Opening(query=query, read_only=_newer(found, len(steps)), check_later=False)
    if not writable:
        text = f"The store's directory {path.parent} cannot be written. Everything can be read; nothing can be stored."
        return Opening(query=query, read_only=text)
    _tighten(path)
    with closing(_connect(path, "mode=rw")) as connection:
        if 0 < found < len(steps):
            copy_to(connection, migration_backup(path, found, clock.now_ms()))
        configure(connection)
        schema.migrate(connection, steps)
    return Opening(check_later=not check)


def _check(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError (SQLITE_CORRUPT) if pages are damaged."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _tighten(path: Path) -> None:
    """Prompts and file contents are private (e14). chmod opens nothing."""
    for name in [path, *beside(path)]:
        if name.exists() and stat.S_IMODE(name.stat().st_mode) != 0o600:
            name.chmod(0o600)


def _newer(found: int, ours: int) -> str:
    return (
        f"The store was written by a newer Standfast (store version {found}; this one knows {ours}). It is open for reading "
        "only and its bytes stay as they are. Update Standfast to go on."
    )


def _replace(path: Path, clock: Clock, steps: Sequence[str], what: str) -> Opening:
    """Damaged: move it away, whole, and carry what can still be read into a new store (a15)."""
    moved = move_away(path, clock.now_ms())
    _create(path, clock, steps)
    with closing(_connect(path, "mode=rw")) as connection:
        configure(connection)
        saved = salvage(moved, connection)
    damage_marker(path).unlink(missing_ok=True)
    text = (
        f"The store was damaged ({what}). The damaged file is kept, untouched, as {moved}. "
        f"{saved.events} events of {saved.sessions} sessions were carried over; {saved.lost_words}"
        f"Backups, if any, are in {path.parent / 'backups'}; `standfast doctor` says more."
    )
    return Opening(notices=[Degraded("store-replaced", text)])
