"""What became of a command, read from its record directory (R12.2, design.md "Verification after a crash").

Synchronous and repeatable: the same state gives the same answer. To judge a command that has not begun is to claim it, so
that it never will.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from standfast.process import record as records
from standfast.process import tree
from standfast.process.identity import alive

Found = Literal["never_begun", "starting", "running", "unsupervised", "ended", "lost", "later_version"]


class State(NamedTuple):
    """What was found.

    never_begun    nothing of it ran, and nothing will
    starting       its supervisor has not yet written who runs
    running        it lives under its supervisor
    unsupervised   it lives, its supervisor is gone: nobody will record how it ends
    ended          `exit` says how
    lost           it began and is gone, and nobody recorded how it ended
    later_version  the record is of a newer Standfast (`detail` names its version): not judged
    """

    found: Found
    record: records.Record | None = None
    exit: records.Exit | None = None
    detail: str = ""


def look(directory: Path) -> State:
    """What the records say now. Claims nothing: a command that has not begun is `starting`."""
    try:
        return _seen(str(directory)) or State("starting")
    except records.LaterVersion as later:
        return State("later_version", detail=str(later))


def judge(directory: Path) -> State:
    """Decide what became of the command of this directory; claims it where it has not begun."""
    place = str(directory)
    try:
        seen = _seen(place)
        if seen is not None:
            return seen
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if records.claim(place, "verifier"):
            return State("never_begun")
        claimed = records.read_claim(place)
        if claimed is None or claimed.by == "verifier":
            return State("never_begun")
        if alive(claimed.who):
            return _seen(place) or State("starting")
        # It died since we looked: it may have written its record before that; if not, its command died at the gate.
        return _seen(place) or State("never_begun")
    except records.LaterVersion as later:
        return State("later_version", detail=str(later))


def _seen(place: str) -> State | None:
    """What the records say, None if the command was not begun."""
    end, record = records.read_exit(place), records.read_record(place)
    if end is not None:
        return State("ended", record, end)
    if record is None:
        return None
    if alive(record.supervisor):
        return State("running", record)
    living = alive(record.process) or bool(tree.of_operation(record.process, record.operation_id))
    end = records.read_exit(place)  # written between our two looks
    if end is not None:
        return State("ended", record, end)
    return State("unsupervised" if living else "lost", record)
