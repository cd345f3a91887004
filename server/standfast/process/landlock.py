"""Landlock: what a process and its children may open, by directories, without any privilege (issue G, level `partial`).

An allow-list that only grows beneath directories: it cannot take `.git` out of a writable workspace. It also keeps a command
from the memory, the environment and (ABI 6) the signals of processes outside. Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls; the same numbers on every machine."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_OF_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
"""ABI → how many file rights it knows; 16 from ABI 5 on."""
_SCOPES = 0b11
"""ABI 6: abstract Unix sockets and signals stay within."""
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""What can be granted on a file; the rest is about directories."""


def abi() -> int:
    """The kernel's Landlock ABI, 0 where it has none or has it switched off."""
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))


def restrict(*, read: Iterable[str], write: Iterable[str]) -> None:
    """From now on this process and its children open nothing but what lies beneath these paths: `read` to read and execute,
    `write` for everything. Paths that do not exist are passed over. Needs no_new_privs. Raises OSError.
    """
    version = abi()
    if version < 1:
        raise OSError("Landlock is not available")
    rights = (1 << _RIGHTS_OF_ABI.get(version, 16)) - 1
    attributes = struct.pack("=QQQ", rights, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 8
    ruleset = _check(_libc().syscall(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        for path in read:
            _grant(ruleset, path, rights & (_EXECUTE | _READ_FILE | _READ_DIR))
        for path in write:
            _grant(ruleset, path, rights)
        _check(_libc().syscall(_RESTRICT, ruleset, ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                rights &= _FILE_RIGHTS
            rule = struct.pack("=Qi", rights, handle)
            _check(_libc().syscall(_ADD, ruleset, ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)))
        finally:
            os.close(handle)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock refused: {os.strerror(number)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
