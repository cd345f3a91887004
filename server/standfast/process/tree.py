"""Find and end every process of a command: grandchildren, those with a session of their own, double forks (b15, ATK-57).

The supervisor is their subreaper, so all of them stay its descendants. Standard library only. A signal goes through a pidfd
whose start time was checked after opening, so that a pid used again is never hit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable

from standfast.process.identity import Identity, Stat, alive, read_stat
from standfast.shortage import let_through

STOP_ROUNDS = 64
"""How often the tree is looked at again while it is being frozen; a fork bomb grows no more once all are stopped."""


def _table() -> list[Stat]:
    """Every process there is now, except dead ones."""
    try:
        names = os.listdir("/proc")
    except OSError as error:
        let_through(error)
        return []
    stats = (read_stat(int(name)) for name in names if name.isdigit())
    return [stat for stat in stats if stat is not None and stat.state not in "ZX"]


def descendants(root: int) -> list[Stat]:
    """All living processes beneath `root`, itself not among them."""
    children = _looker(root)
    found: list[Stat] = []
    waiting = [root]
    while waiting:
        beneath = children(waiting.pop())
        found += beneath
        waiting += [stat.pid for stat in beneath]
    return found


def _looker(root: int) -> Callable[[int], list[Stat]]:
    return _children if os.path.exists(f"/proc/{root}/task/{root}/children") else _children_by_table()


def _children(pid: int) -> list[Stat]:
    """The kernel's own list: fast enough to catch a process that forks itself away every millisecond."""
    found: list[Stat] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                stats = [read_stat(int(child)) for child in file.read().split()]
            found += [stat for stat in stats if stat is not None and stat.state not in "ZX"]
    except OSError as error:
        let_through(error)
        return found
    return found


def _children_by_table() -> Callable[[int], list[Stat]]:
    """Where the kernel gives no such list (CONFIG_PROC_CHILDREN): from a look at all processes."""
    children: dict[int, list[Stat]] = {}
    for stat in _table():
        children.setdefault(stat.parent, []).append(stat)
    return lambda pid: children.get(pid, [])


def of_operation(leader: Identity, operation_id: str) -> list[Stat]:
    """The processes of a command whose supervisor is gone: its session, what descends from it, what carries its id."""
    mark = f"STANDFAST_OPERATION_ID={operation_id}".encode()
    table = _table()
    leads = alive(leader)
    found: dict[int, Stat] = {}
    for stat in table:
        if (leads and leader.pid in (stat.pid, stat.session)) or (operation_id and _carries(stat.pid, mark)):
            found[stat.pid] = stat
    for stat in list(found.values()):
        found.update((below.pid, below) for below in descendants(stat.pid))
    found.pop(os.getpid(), None)
    return list(found.values())


def _carries(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except OSError as error:
        let_through(error)
        return False


def send(stat: Stat, number: int) -> None:
    """Signal this very process; nothing happens if it is gone or not ours to signal."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(stat.pid, number)
            return
        handle = os.pidfd_open(stat.pid)
        try:
            now = read_stat(stat.pid)
            if now is not None and now.start == stat.start:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except OSError:
        return


def terminate(processes: Iterable[Stat]) -> None:
    """Ask them to end; a stopped one is woken so that it can."""
    for stat in processes:
        send(stat, signal.SIGTERM)
        send(stat, signal.SIGCONT)


def kill_outermost(root: int) -> None:
    """Kill the children of `root` and theirs: the sandbox itself, and the first process of its namespace."""
    children = _looker(root)
    outer = children(root)
    for stat in (*(inner for one in outer for inner in children(one.pid)), *outer):
        send(stat, signal.SIGKILL)


def kill(look: Callable[[], list[Stat]]) -> None:
    """End all that `look` finds. First everything is frozen, until nothing new appears: then no fork can escape."""
    frozen: set[tuple[int, int]] = set()
    for _ in range(STOP_ROUNDS):
        fresh = [stat for stat in look() if (stat.pid, stat.start) not in frozen]
        if not fresh:
            break
        for stat in fresh:
            send(stat, signal.SIGSTOP)
            frozen.add((stat.pid, stat.start))
    for stat in look():
        send(stat, signal.SIGKILL)
