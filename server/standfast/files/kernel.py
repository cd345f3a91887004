"""What Linux offers and Python does not: openat2, renameat2, leases. Elsewhere `AVAILABLE` parts are missing and said so.

Owns the calls only; what they are for is told where they are used (`paths`, `transaction`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import sys

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08
SYS_OPENAT2 = 437
"""The same on every architecture."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_missing = {errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP}


def open_beneath(dir_fd: int, path: str, flags: int) -> int | None:
    """openat2 of `path` without leaving `dir_fd` and without following any link; None where the kernel has it not.

    Raises OSError: ELOOP or EXDEV where the path would lead through a link or out.
    """
    if _libc is None:
        return None
    how = _OpenHow(flags | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
    fd = _libc.syscall(SYS_OPENAT2, dir_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd >= 0:
        return fd
    code = ctypes.get_errno()
    if code in _missing:
        return None
    if code == errno.EAGAIN:  # a rename raced with the kernel's own check; the walk decides
        return None
    raise OSError(code, os.strerror(code), path)


def _renameat2(dir_fd: int, old: str, new: str, flag: int, new_dir_fd: int | None = None) -> bool:
    """False where the kernel or the file system has not this kind of rename."""
    if _libc is None or not hasattr(_libc, "renameat2"):
        return False
    target_fd = dir_fd if new_dir_fd is None else new_dir_fd
    if _libc.renameat2(dir_fd, os.fsencode(old), target_fd, os.fsencode(new), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.ENOSYS, errno.EINVAL}:
        return False
    raise OSError(code, os.strerror(code), new)


def exchange(dir_fd: int, one: str, other: str) -> bool:
    """Let two names of one directory change places in one step. False: not possible here (nothing was done).

    The order matters to nobody but those who watch: with the target first, editors see it changed. With the temporary name
    first, VS Code's watcher sees the target made and deleted, reports nothing, and an open editor keeps the old text (d03).
    """
    return _renameat2(dir_fd, other, one, RENAME_EXCHANGE)


def rename_to_free(dir_fd: int, old: str, new: str) -> None:
    """Rename inside one directory, onto a free name only. Raises FileExistsError."""
    if _renameat2(dir_fd, old, new, RENAME_NOREPLACE):
        return
    if os.path.islink(f"/proc/self/fd/{dir_fd}/{old}"):
        os.symlink(os.readlink(old, dir_fd=dir_fd), new, dir_fd=dir_fd)
    else:
        os.link(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    os.unlink(old, dir_fd=dir_fd)


def is_written_elsewhere(fd: int) -> bool:
    """Whether somebody has the file open for writing: a read lease is granted only if nobody has (Linux).

    False where leases do not exist: then the content's version alone has to tell.
    """
    if sys.platform != "linux":
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # a break of the lease must not end the process by SIGIO
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
