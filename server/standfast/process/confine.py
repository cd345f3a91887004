"""What a command's own process does to itself right before it becomes the command (the supervisor's child; standard library only).

`full`: it hands the system-call filter to bubblewrap, by a descriptor. `partial`: it confines itself, for good, by Landlock and the
same filter. Where any of it fails nothing is run: there is no way from here to running unconfined.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from typing import Any, NamedTuple

from standfast.process import landlock, seccomp

FILTER_FD = 9
"""Where bubblewrap is told to read the filter from."""
TASKS_MAX = 16_384
"""Processes and threads at once: a fork bomb ends here (in `full` counted from 0, else with the user's others; root has no limit)."""
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24


class Confinement(NamedTuple):
    """How a command is confined; plain values, since they travel in `spec.json`."""

    level: str
    """full, partial, or seatbelt: the words that run it confine it."""
    sockets: bool = True
    """IPv4 and IPv6 sockets may be made (in a network of its own where the level is `full`)."""
    read: tuple[str, ...] = ()
    """`partial`: what may be read and run."""
    write: tuple[str, ...] = ()
    """`partial`: what may be changed."""
    make: tuple[str, ...] = ()
    """Private directories to make first, 0700."""
    memory: int = 0
    """Bytes of data that each process may have; 0: as many as there are."""


def from_spec(value: Any) -> Confinement | None:
    """The confinement in a spec read from disk; None: the command runs unconfined."""
    return None if value is None else Confinement(*value)


def leave(confinement: Confinement | None) -> None:
    """Remove the private directories of a command that has ended."""
    for directory in confinement.make if confinement is not None else ():
        _remove(directory)


def _remove(directory: str) -> None:
    """A directory and all in it, as far as that can be; links are removed, not followed. `shutil` takes 20 ms to import."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(directory)):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)
        os.rmdir(directory)


def enter(confinement: Confinement) -> None:
    """Confine this process, or get ready for the program that does. Raises OSError: then the command must not run."""
    for directory in confinement.make:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    limits = [(resource.RLIMIT_NPROC, TASKS_MAX), (resource.RLIMIT_CORE, 0)]
    if confinement.memory:  # not the address space: runtimes reserve far more of that than they ever touch
        limits.append((resource.RLIMIT_DATA, confinement.memory))
    for limit, value in limits:
        hard = resource.getrlimit(limit)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (most, most))
    if confinement.level == "seatbelt":
        return
    program = seccomp.program(sockets=confinement.sockets)
    if confinement.level == "full":
        handle = os.memfd_create("filter", 0)
        os.write(handle, program)
        os.lseek(handle, 0, os.SEEK_SET)
        if handle != FILTER_FD:
            os.dup2(handle, FILTER_FD)
            os.close(handle)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails where there is nothing to drop
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    landlock.restrict(read=confinement.read, write=confinement.write)
    seccomp.load(program)
