"""The seam for confinement of commands: today there is none, and it is said (I13). A later issue fills it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["none"]


class Policy(NamedTuple):
    """What a command may do. `level` is what `detect` found this machine can enforce."""

    level: Level = "none"


def detect() -> Level:
    """The strongest confinement that works here."""
    return "none"


def wrap(argv: list[str], policy: Policy) -> list[str]:
    """The command line that runs `argv` confined; `argv` itself at level `none`."""
    return list(argv)
