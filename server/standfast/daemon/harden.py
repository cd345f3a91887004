"""What the daemon's process does to itself before anything else: detach, keep its memory small and to itself, and stdout unused."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys

PR_SET_DUMPABLE = 4
M_ARENA_MAX = -8
DEBUG_VARIABLE = "STANDFAST_DEBUG"
"""Set to anything: debuggers and core dumps work, at the price of ATK-37."""


def detach() -> None:
    """Leave the process tree of whoever started us: editors end theirs, children and all. Call before any thread runs.

    The starter has made the session already (`start_new_session`); the fork makes us a process that it does not know.
    """
    if os.fork():
        os._exit(0)


def guard_stdio() -> None:
    """fd 1 is never written: whatever prints goes to stderr, which is the log's side file (d17)."""
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)


def keep_memory_private() -> None:
    """No core dumps, and no other process of this user reads our memory or environment: the key is in there (ATK-37, 38)."""
    if os.environ.get(DEBUG_VARIABLE):
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def keep_small() -> None:
    """Before any thread is started: glibc would give each a heap of its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def settle_memory() -> None:
    """After everything is loaded: give back what loading used, and let no collection walk over the rest again.

    Without a last collection: it takes as long as ten modules and finds nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    gc.freeze()
