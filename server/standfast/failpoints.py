"""Named places where a test makes this process die or a disk fail (reliability.md §2, F1). Without FAILPOINTS: nothing.

    FAILPOINTS="after_append=kill@3;before_append=error@1:ENOSPC" standfast daemon start

A syscall sweep cannot name the boundary between append, publish and effect; these can. The environment is read once, at
import. Owns the places' behaviour only; each place is a `hit("name")` where it belongs.
"""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import dataclass


@dataclass(slots=True)
class _Point:
    error: int | None
    """The errno to raise; None: die by SIGKILL."""
    at: int
    """Which hit acts, from 1."""
    seen: int = 0


def parse(text: str) -> dict[str, _Point]:
    """`name=kill[@N]` and `name=error[@N]:ERRNO`, joined by semicolons. Raises ValueError: a misspelt point must not pass."""
    points: dict[str, _Point] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, _, action = part.partition("=")
        action, _, code = action.partition(":")
        verb, _, count = action.partition("@")
        if not name or verb not in ("kill", "error") or (verb == "error") != bool(code):
            raise ValueError(f"FAILPOINTS: {part!r} is neither name=kill@N nor name=error@N:ERRNO")
        points[name] = _Point(getattr(errno, code) if code else None, int(count or 1))
    return points


_points = parse(os.environ.get("FAILPOINTS", ""))


def hit(name: str) -> None:
    """Pass the place called `name`. Dies or raises OSError if FAILPOINTS says that this is the time."""
    if not _points:
        return
    point = _points.get(name)
    if point is None:
        return
    point.seen += 1
    if point.seen != point.at:
        return
    if point.error is not None:
        raise OSError(point.error, os.strerror(point.error), f"failpoint {name}")
    os.kill(os.getpid(), signal.SIGKILL)
