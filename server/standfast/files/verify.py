"""What became of a file change that has no result: looked up by content, file by file (R8, R9; design.md "Verification").

Reads the intents' own names and nothing else; the answer is the same however often it is asked.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from standfast.events.types import Verdict
from standfast.files.entry import Entry
from standfast.files.intents import FileIntent, Name, Side, names_of
from standfast.files.paths import Root
from standfast.files.refusal import Refused
from standfast.files.text import shown
from standfast.shortage import let_through

State = Literal["before", "after", "other"]
LIKENESS_MAX = 4 << 20
"""Bytes that are compared to say which side a file is nearer to."""
TOLD_MAX = 8
"""So many files are told of one by one in the evidence."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One name as it is now. `touched`: the content from before, in another file (somebody wrote it anew).

    `left`: what lies under the journalled names. `rescued`: the one of them that nobody recorded although the exchange
    was made: what somebody saved in that very moment. It is theirs and is never swept.
    """

    name: Name
    found: Entry
    state: State
    touched: bool = False
    left: tuple[Entry, ...] = ()
    rescued: Entry | None = None


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """One intent's verdict, with its names as they are."""

    intent: FileIntent
    verdict: Verdict
    names: tuple[Observed, ...]


def observe(root: Root, intent: FileIntent) -> FileVerdict:
    """Look at the names of one intent."""
    names = tuple(_observe_name(root, name) for name in names_of(intent))
    return FileVerdict(intent, _verdict([one.state for one in names]), names)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """All alike: that. Otherwise the worst news first: diverged, unknown, partial."""
    kinds = set(verdicts)
    if len(kinds) == 1:
        return verdicts[0]
    if "diverged" in kinds:
        return "diverged"
    return "unknown" if "unknown" in kinds else "partial"


def evidence(files: Sequence[FileVerdict], blobs: Mapping[str, bytes]) -> str:
    """Sentences for the person and the model: which file holds what, and how that is known."""
    told = [sentence for file in files for sentence in _sentences(file, blobs)]
    rest = len(told) - TOLD_MAX
    return " ".join(told[:TOLD_MAX]) + (f" And {rest} more files likewise." if rest > 0 else "")


def sweep(root: Root, files: Sequence[FileVerdict], blobs: Mapping[str, bytes]) -> list[str]:
    """Remove journalled names whose content we recorded (whole, or the beginning of what we were writing), and directories
    that were made for a file which is not there. Returns the paths removed. Anything else under such a name stays."""
    removed: list[str] = []
    for observed in (one for file in files for one in file.names):
        name = observed.name
        for left in observed.left:
            if left is not observed.rescued and _is_ours(left, name, blobs):
                above, _, temporary = left.path.rpartition("/")
                with contextlib.suppress(OSError, Refused), root.directory(above) as fd:
                    os.unlink(temporary, dir_fd=fd)
                    removed.append(left.path)
        if name.made and observed.found.kind == "missing":
            root.remove_directories(name.made)
    return removed


def _observe_name(root: Root, name: Name) -> Observed:
    found = look_again(root, name.path)
    above = name.path.rpartition("/")[0]
    beside = [look_again(root, f"{above}/{temp}" if above else temp) for temp in (name.temp, name.back_temp)]
    state = _state(found, name)
    touched = state == "before" and name.before is not None and name.before.inode not in {None, found.inode}
    rescued = _rescued(name, state, *beside)
    left = tuple(entry for entry in beside if entry.exists)
    return Observed(name, found, "other" if rescued else state, touched, left, rescued)


def _rescued(name: Name, state: State, forward: Entry, back: Entry) -> Entry | None:
    """What an exchange displaced and nobody recorded. Where no exchange was made, a strange content is a torn write."""
    if state == "after" and name.before is not None and forward.exists and not _is_known(forward, name):
        return forward
    if state == "before" and name.after is not None and back.exists and not _is_known(back, name):
        return back
    return None


def _is_known(found: Entry, name: Name) -> bool:
    return found.version in {side.version for side in (name.before, name.after) if side is not None}


def look_again(root: Root, path: str) -> Entry:
    """A resolved path as it is; where it cannot be looked at any more (it leads out now, or may not be read): special.

    Raises OSError where nothing can be looked at now, for want of descriptors: that says nothing of the file (F20).
    """
    try:
        return root.at(path, path)
    except Refused as refused:
        if isinstance(refused.__cause__, OSError):
            let_through(refused.__cause__)
        return Entry(path, path, "special")


def _state(found: Entry, name: Name) -> State:
    if is_side(found, name.after):
        return "after"
    return "before" if is_side(found, name.before) else "other"


def is_side(found: Entry, side: Side | None) -> bool:
    """Whether a name holds one end of its change; no file is an end, too."""
    if side is None:
        return found.kind == "missing"
    return found.version == side.version and (found.kind == "link") == side.link


def _verdict(states: Sequence[State]) -> Verdict:
    if "other" in states:
        return "diverged"
    kinds = set(states)
    if kinds == {"after"}:
        return "applied"
    return "not_applied" if kinds == {"before"} else "partial"


def _sentences(file: FileVerdict, blobs: Mapping[str, bytes]) -> list[str]:
    path = file.intent.path
    if file.verdict == "applied":
        return [f"{path} has the content that was to be written (by its hash)."]
    if file.verdict == "not_applied":
        touched = any(one.touched for one in file.names)
        again = " (touched: it is another file now, with the same content)" if touched else ""
        return [f"{path} is as it was before (by its hash){again}."]
    if file.verdict == "partial":
        return [f"The move from {file.intent.from_path} to {path} is half done."]
    return [_divergence(one, blobs) for one in file.names if one.state == "other"]


def _divergence(one: Observed, blobs: Mapping[str, bytes]) -> str:
    path, found = one.name.path, one.found
    if one.rescued:
        return f"{path}: somebody saved it in the very moment of the write; that version is kept beside it, 'undo' puts it back."
    if found.kind == "missing":
        return f"{path} is not there any more."
    if found.data is None:
        return f"{path} is no regular file any more."
    sides = {"before": one.name.before_blob, "after": one.name.after_blob}
    known = {side: blobs[blob] for side, blob in sides.items() if blob is not None and blob in blobs}
    if not known:
        return f"{path} holds neither the old nor the new content."
    side, data = max(known.items(), key=lambda item: likeness(found.data or b"", item[1]))
    where = "the state before" if side == "before" else "what was to be written"
    return f"{path} holds neither; it is nearer to {where} and differs from it{_first_difference(found.data, data)}."


def likeness(one: bytes, other: bytes) -> float:
    """From 0 to 1: the share of lines that both have; of very long contents that of their beginnings."""
    one, other = one[:LIKENESS_MAX], other[:LIKENESS_MAX]
    lines, others = Counter(one.split(b"\n")), Counter(other.split(b"\n"))
    return 2 * (lines & others).total() / (lines.total() + others.total())


def _first_difference(found: bytes, known: bytes) -> str:
    lines, others = found.split(b"\n"), known.split(b"\n")
    for number, (line, other) in enumerate(zip(lines, others, strict=False), 1):
        if line != other:
            text = shown(line[:80].decode("utf-8", "surrogateescape")).strip()
            return f" from line {number} on ('{text}')"
    return f" from line {min(len(lines), len(others))} on"


def _is_ours(left: Entry, name: Name, blobs: Mapping[str, bytes]) -> bool:
    """Whether we recorded this content, whole or as the beginning of a write that was cut."""
    if left.data is None:
        return False
    sides = (blobs.get(blob) for blob in (name.before_blob, name.after_blob) if blob is not None)
    data = left.data
    return _is_known(left, name) or any(side is not None and side.startswith(data) for side in sides)
