"""What SQLite and the system report, as errors that a person can act on. Owns the sentences and reasons of the store."""

from __future__ import annotations

import errno
import os
import sqlite3

from standfast.errors import StoreError
from standfast.shortage import none_left, want_of

_KEPT = "Everything stored before is safe; this step was not stored."


def store_error(error: BaseException) -> StoreError:
    """The StoreError for an error met while writing or reading. A StoreError stays as it is."""
    if isinstance(error, StoreError):
        return error
    code = primary_code(error)
    want = want_of(_cause(error, code))
    if want is not None:
        return StoreError(want.reason, want.message)
    if code == sqlite3.SQLITE_FULL:
        return StoreError("StorageFull", f"The disk is full. {_KEPT} Free some space, then go on.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            "StoreBusy",
            f"Another program has the store locked. {_KEPT} Close it (a database shell left open?), then try again.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(
            "StoreReadOnly",
            f"The store cannot be written ({error}). {_KEPT} Make its disk and directory writable again.",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(
            "StoreDamaged",
            f"The store is damaged ({error}). {_KEPT} Stop the daemon and run `standfast doctor`; nothing is deleted.",
        )
    return StoreError("StoreFailed", f"The store could not be used ({error}). {_KEPT} Check the disk, then try again.")


def _cause(error: BaseException, code: int) -> BaseException:
    """SQLite does not say why it could not open a file."""
    if code == sqlite3.SQLITE_NOMEM:
        return MemoryError()
    if code == sqlite3.SQLITE_CANTOPEN and none_left():
        return OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return error


def primary_code(error: BaseException) -> int:
    """SQLite's primary result code, or the nearest one for an OSError; 0 if unknown."""
    if isinstance(error, OSError):
        return {
            errno.ENOSPC: sqlite3.SQLITE_FULL,
            errno.EDQUOT: sqlite3.SQLITE_FULL,
            errno.EFBIG: sqlite3.SQLITE_FULL,
            errno.EROFS: sqlite3.SQLITE_READONLY,
            errno.EACCES: sqlite3.SQLITE_READONLY,
            errno.EIO: sqlite3.SQLITE_IOERR,
        }.get(error.errno or 0, 0)
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_damage(error: BaseException) -> bool:
    """Whether the bytes of the database are not what SQLite wrote."""
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def must_reopen(error: BaseException) -> bool:
    """Whether the connection must not be used on: after a failed write or fsync nobody knows what the kernel kept (F7)."""
    return primary_code(error) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
