"""Which entries of a folder any process opens, as the kernel tells (inotify). Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_OPENED = 0x20
_HEADER = struct.Struct("iIII")
_EVENTS_BYTES = 1 << 20


@contextlib.contextmanager
def opened_files(folder: Path) -> Iterator[list[str]]:
    """`with opened_files(folder) as names:` `names` is filled when the block ends: each open of an entry, in order."""
    libc = ctypes.CDLL(None, use_errno=True)
    watching = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    names: list[str] = []
    try:
        assert libc.inotify_add_watch(watching, os.fsencode(folder), _OPENED) >= 0, os.strerror(ctypes.get_errno())
        yield names
        with contextlib.suppress(BlockingIOError):
            while data := os.read(watching, _EVENTS_BYTES):
                names += _names(data)
    finally:
        os.close(watching)


def _names(data: bytes) -> Iterator[str]:
    at = 0
    while at < len(data):
        _, _, _, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        yield os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length
