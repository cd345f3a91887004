"""Named places where a test makes this process die or a disk fail (reliability.md §2, F1). Without FAILPOINTS: nothing.

    FAILPOINTS="after_append=kill@3;before_append=error@1:ENOSPC" standfast daemon start

`kill` dies, `stop` waits for SIGCONT (so that a test can act in that very moment), `error` fails as a disk does.
A syscall sweep cannot name the boundary between append, publish and effect; these can. The environment is read once, at
import. Owns the places' behaviour only; each place is a `hit("name")` where it belongs.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from dataclasses import dataclass


@dataclass(slots=True)
class _Point:
    error: int | None
    """The errno to raise; None: `signal` to this process."""
    signal: signal.Signals
    at: frozenset[int] | None
    """Which hits act, from 1; None: each."""
    seen: int = 0


def parse(text: str) -> dict[str, _Point]:
    """`name=kill[@N]`, `name=stop[@N]`, `name=error[@N]:ERRNO`, joined by semicolons; N may be several (`stop@1,3`) or each (`stop@*`).

    Raises ValueError: a misspelt point must not pass.
    """
    points: dict[str, _Point] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, _, action = part.partition("=")
        action, _, code = action.partition(":")
        verb, _, count = action.partition("@")
        if not name or verb not in ("kill", "stop", "error") or (verb == "error") != bool(code):
            raise ValueError(f"FAILPOINTS: {part!r} is not name=kill@N, name=stop@N or name=error@N:ERRNO")
        sent = signal.SIGSTOP if verb == "stop" else signal.SIGKILL
        at = None if count == "*" else frozenset(map(int, (count or "1").split(",")))
        points[name] = _Point(getattr(errno, code) if code else None, sent, at)
    return points


_points = parse(os.environ.get("FAILPOINTS", ""))


def hit(name: str) -> None:
    """Pass the place called `name`. Dies, stops or raises OSError if FAILPOINTS says that this is the time."""
    if not _points:
        return
    point = _points.get(name)
    if point is None:
        return
    point.seen += 1
    if point.at is not None and point.seen not in point.at:
        return
    if point.error is not None:
        raise OSError(point.error, os.strerror(point.error), f"failpoint {name}")
    signal.pthread_kill(threading.get_ident(), point.signal)  # this very thread: it goes no step further
