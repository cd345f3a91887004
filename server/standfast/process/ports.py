"""What a living command's processes listen on (R12.2): asked of the system, by the recorded process, never guessed."""

from __future__ import annotations

import psutil

from standfast.process import tree
from standfast.process.record import Record


def processes(record: Record) -> list[int]:
    """The pids of a command now: everything beneath its supervisor."""
    return [stat.pid for stat in tree.descendants(record.supervisor.pid)]


def listening(record: Record) -> list[str]:
    """`address:port` of each listening socket (TCP) or bound one (UDP) of the command's processes, sorted."""
    found: set[str] = set()
    for pid in processes(record):
        try:
            connections = psutil.Process(pid).net_connections(kind="inet")
        except psutil.Error:  # it ended meanwhile, or is another user's
            continue
        for connection in connections:
            if connection.laddr and (connection.status == psutil.CONN_LISTEN or not connection.raddr):
                found.add(f"{connection.laddr.ip}:{connection.laddr.port}")
    return sorted(found)
