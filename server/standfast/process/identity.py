"""Who a process is: pid, start time and boot id together (R12.2). A pid alone names nobody: pids are used again.

Standard library only: the supervisor imports it too. Knows Linux by /proc; elsewhere asks psutil.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from standfast.shortage import let_through

_ZOMBIE_STATES = frozenset("ZX")


class Identity(NamedTuple):
    """One process for all time."""

    pid: int
    start: int
    """Start time in clock ticks since boot (Linux), else in hundredths of a second since 1970."""
    boot: str
    """The boot it belongs to: after a restart of the machine every older identity is dead."""


class Stat(NamedTuple):
    """What /proc/<pid>/stat says, the part that is needed here."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: int


def read_stat(pid: int) -> Stat | None:
    """The process now behind a pid, None if there is none. Linux only (elsewhere always None).

    Raises OSError where it cannot be looked at for want of descriptors: nobody must be taken for dead because of that.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to import in the supervisor
            text = file.read()
    except OSError as error:
        let_through(error)
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses (ATK: "evil) S 1").
    fields = text[text.rfind(b")") + 2 :].split()
    return Stat(pid, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def boot_id() -> str:
    """The id of this boot of the machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError as error:
        let_through(error)
        import psutil

        return f"boot-{int(psutil.boot_time())}"


def start_of(pid: int) -> int | None:
    """When the living process behind `pid` began; None if it is gone, or dead and only not yet reaped."""
    if os.path.isdir("/proc/self"):
        stat = read_stat(pid)
        return None if stat is None or stat.state in _ZOMBIE_STATES else stat.start
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else int(process.create_time() * 100)
    except psutil.Error:
        return None


def identify(pid: int) -> Identity | None:
    """The identity of a living process, None if there is none."""
    start = start_of(pid)
    return None if start is None else Identity(pid, start, boot_id())


def alive(identity: Identity) -> bool:
    """Whether this very process still lives (never: whether something lives behind its pid)."""
    return identity.boot == boot_id() and start_of(identity.pid) == identity.start
