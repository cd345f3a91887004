"""Under which other paths a place can be reached through mounts: bind mounts, one file system mounted twice (ATK-07)."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    device: bytes
    """major:minor."""
    root: str
    """The directory of that file system which is mounted."""
    point: str


def aliases(path: str) -> list[str]:
    """Other paths of this directory, or of what lies in it. `path` is resolved. Empty where the system does not tell."""
    try:
        with open(MOUNTS, "rb") as file:  # noqa: PTH123
            mounts = [_mount(line) for line in file]
    except OSError:
        return []
    holders = [mount for mount in mounts if _rest(path, mount.point) is not None]
    if not holders:
        return []
    holder = max(reversed(holders), key=lambda mount: len(mount.point))  # of two on one point the later lies on top
    inner = _join(holder.root, _rest(path, holder.point) or "")
    found: set[str] = set()
    for mount in mounts:
        if mount.device != holder.device:
            continue
        if (rest := _rest(inner, mount.root)) is not None:
            found.add(_join(mount.point, rest))
        elif _rest(mount.root, inner) is not None:
            found.add(mount.point)
    return sorted(one for one in found if _rest(one, path) is None and os.path.lexists(one))


def _mount(line: bytes) -> Mount:
    """One line: id, parent, device, root, mount point, … (proc_pid_mountinfo(5))."""
    fields = [_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field) for field in line.split(b" ")[:5]]
    return Mount(fields[2], os.fsdecode(fields[3]), os.fsdecode(fields[4]))


def _rest(path: str, above: str) -> str | None:
    """What comes after `above` in a path beneath it, None where it is not."""
    if path == above or above == "/":
        return path[len(above) :].lstrip("/")
    return path[len(above) + 1 :] if path.startswith(f"{above}/") else None


def _join(path: str, rest: str) -> str:
    return f"{path.rstrip('/')}/{rest}" if rest else path
