"""Empty directories that stand in for ones that start programs and are not there yet (`.vscode`, `.claude`, …; ATK-19).

A confined command gets them read-only, so that it cannot make them with content that an open editor would act on at once. They
are in the workspace only while a command runs: whoever ends last removes them. Each supervisor shares one lock; its file
names what was made, so that also those of a killed one are removed by the next. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence


def hold(lock: str, directories: Sequence[str]) -> int:
    """Make what is missing and keep it there until `let_go`. Returns a descriptor, -1 where there is nothing to hold."""
    if not directories:
        return -1
    os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_SH)
    for directory in directories:
        with contextlib.suppress(OSError):
            os.mkdir(directory, 0o755)
            os.write(handle, os.fsencode(directory) + b"\0")
    return handle


def let_go(handle: int) -> None:
    """Need them no more; remove them if nobody else does. One with something in it is somebody's, and stays."""
    if handle < 0:
        return
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for directory in os.pread(handle, os.fstat(handle).st_size, 0).split(b"\0"):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        os.ftruncate(handle, 0)
    os.close(handle)
