"""Who connects to the daemon's socket, asked of the kernel and never of the peer (ATK-05, issue G.4).

Refused: other users, processes in namespaces of their own (a sandboxed command), and whatever descends from a command of ours: it
could answer its own permission.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from collections.abc import Set

from standfast.process.identity import read_stat

NAMESPACES = ("user", "pid", "net", "mnt")
"""A peer in another one of these is a sandboxed command, not an editor."""
SO_PEERPIDFD = 77
"""asm-generic/socket.h, Linux 6.5: a descriptor for the process itself; its number may be another's by now."""
ANCESTORS_MAX = 256
_UCRED = struct.Struct("3i")
"""pid, uid, gid: what SO_PEERCRED gives on Linux."""


def refusal(sock: socket.socket, supervisors: Set[int] = frozenset()) -> str | None:
    """Why this peer may not talk to the daemon; None if it may. `supervisors`: pids of those of our living commands."""
    if sys.platform != "linux":
        return None  # the directory's mode is the guard there
    pid, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if uid != os.geteuid():
        return f"uid {uid} is not the owner of this daemon"
    handle = _pidfd(sock)
    try:
        why = _stranger(pid) or _of_a_command(pid, supervisors)
        if why is None and handle >= 0 and _ended(handle):
            return f"pid {pid} ended while it was looked at"
        return why
    finally:
        if handle >= 0:
            os.close(handle)


def _stranger(pid: int) -> str | None:
    return next((f"pid {pid} is in another {kind} namespace" for kind in NAMESPACES if not _shares(pid, kind)), None)


def _shares(pid: int, kind: str) -> bool:
    """A peer that hides its namespaces counts as a stranger; a kernel without this kind has only one of them."""
    try:
        ours = os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return True
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}") == ours
    except OSError:
        return False


def _of_a_command(pid: int, supervisors: Set[int]) -> str | None:
    """A supervisor stays the ancestor of all that its command starts, double forks too: it is their subreaper."""
    at = pid
    for _ in range(ANCESTORS_MAX):
        if at in supervisors:
            return f"pid {pid} is a process of a command that the agent runs"
        stat = read_stat(at) if at > 1 else None
        if stat is None:
            return None
        at = stat.parent
    return f"pid {pid} has too many ancestors"


def _pidfd(sock: socket.socket) -> int:
    """A descriptor for the peer, -1 where the kernel has none: it tells whether what was read of its pid was its own."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        return -1


def _ended(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))
