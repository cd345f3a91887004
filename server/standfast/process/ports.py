"""What a living command's processes listen on (R12.2): asked of the system, by the recorded process, never guessed.

On Linux read from each process's own /proc: a confined command has a network of its own, which other places do not show.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys

import psutil

from standfast.process import tree
from standfast.process.record import Record

_TABLES = (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07"))
"""Table → the state of a listening (TCP), a bound (UDP) socket (include/net/tcp_states.h)."""


def processes(record: Record) -> list[int]:
    """The pids of a command now: everything beneath its supervisor."""
    return [stat.pid for stat in tree.descendants(record.supervisor.pid)]


def listening(record: Record) -> list[str]:
    """`address:port` of each listening socket (TCP) or bound one (UDP) of the command's processes, sorted."""
    look = _by_table if sys.platform.startswith("linux") else _by_psutil
    return sorted({found for pid in processes(record) for found in look(pid)})


def _by_table(pid: int) -> list[str]:
    """A process that ended meanwhile, or is another user's, listens on nothing that we can tell."""
    own = _sockets(pid)
    found: list[str] = []
    for table, state in _TABLES if own else ():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:  # noqa: PTH123
            rows = [line.split() for line in list(file)[1:]]
            found += [_address(row[1]) for row in rows if row[3] == state and row[9] in own]
    return found


def _sockets(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    found.add(target[len("socket:[") : -1])
    return found


def _address(text: str) -> str:
    """`0100007F:1F90` as people write it; the kernel prints whole words in the machine's own order."""
    words, _, port = text.partition(":")
    raw = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return f"{socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)}:{int(port, 16)}"


def _by_psutil(pid: int) -> list[str]:
    try:
        connections = psutil.Process(pid).net_connections(kind="inet")
    except psutil.Error:
        return []
    return [
        f"{connection.laddr.ip}:{connection.laddr.port}"
        for connection in connections
        if connection.laddr and (connection.status == psutil.CONN_LISTEN or not connection.raddr)
    ]
