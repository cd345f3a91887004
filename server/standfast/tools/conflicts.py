"""A refused write as the model and the person meet it (R11.4; design.md "Refusals of writes").

The answer holds the fixed word, what happened, the text as it is now where it matters (so that one retry suffices,
scenario c04), and what to do. A clean three-way merge is offered in the conflict, never applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from standfast.events.types import Conflict, HunkState, SeenFile
from standfast.files.difference import first_change
from standfast.files.entry import Entry
from standfast.files.merge import merge
from standfast.files.refusal import Refusal
from standfast.files.text import read_text, shown, split_lines
from standfast.files.turn import off_loop
from standfast.files.version import version_of
from standfast.tools.base import Outcome, ToolContext
from standfast.tools.edits import seen_file, uri_of

Word = Literal["FILE_CHANGED", "FILE_NOT_READ", "PATCH_CONFLICT"]

WHOLE_MAX = 16_000
"""Characters up to which a refused file is told whole."""
AROUND = 20
"""Lines told before and behind the place in question of a longer one."""

ADVICE: Mapping[str, str] = {
    "FILE_NOT_READ": "Read the whole file with read_file, then write it.",
    "FILE_CHANGED": "Look at the text as it is now, keep what somebody else changed, and send the edit anew.",
    "PATCH_CONFLICT": "Make the patch anew from the text as it is now; use enough context that one place fits.",
    "already_applied": "Nothing needs to be done for what is there already; send only the rest, if there is any.",
    "dirty_buffer": "The person has unsaved text there. Do something else, or ask them to save; do not try again by yourself.",
    "exists": "Read it first; use an update if it is to be changed.",
    "destination_exists": "Choose another name, or update the file that is there.",
    "not_found": "Look with list_files where it is now.",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a call wanted for one file, as far as it can be told when it does not fit.

    `base`: what the model saw. `proposed`: what it would have made of that. `merged`: an offer already at hand.
    `change`: tool and arguments, so that the wish can be evaluated again later.
    """

    path: str
    """Resolved, where it could be."""
    change: Mapping[str, Any]
    current: Entry | None = None
    base: bytes | None = None
    proposed: bytes | None = None
    merged: bytes | None = None
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])


def failed(refusal: Refusal) -> Outcome:
    """A wish that is wrong or not allowed: an error, nothing to settle."""
    return Outcome("error", f"{refusal.reason}: {refusal.message}", reason=refusal.reason)


async def refused(ctx: ToolContext, word: Word, refusal: Refusal, wish: Wish) -> Outcome:
    """The outcome of a refused write, with its conflict."""
    current = wish.current.data if wish.current is not None and wish.current.kind == "file" else None
    merged = wish.merged
    if merged is None and None not in (wish.base, wish.proposed, current):
        merged = await merge(wish.base or b"", current or b"", wish.proposed or b"")
    if merged == current:
        merged = None
    sides = {"base_blob": wish.base, "current_blob": current, "proposed_blob": wish.proposed, "merged_blob": merged}
    blobs = {version_of(data): data for data in sides.values() if data is not None}
    hunks = refusal.hunks
    if wish.base is not None and current is not None and not any(hunk.line or hunk.candidate_lines for hunk in hunks):
        line = await off_loop(lambda _: first_change(wish.base or b"", current))
        hunks = (HunkState(index=0, state="conflict", reason=refusal.reason, line=line),) if line else hunks
    reason = refusal.reason if word == "PATCH_CONFLICT" or refusal.reason == "dirty_buffer" else word
    conflict = Conflict.model_validate(
        {
            "uri": uri_of(ctx, wish.path),
            "path": wish.path,
            "reason": "FILE_CHANGED" if reason == "file_changed" else reason,
            "message": refusal.message,
            "hunks": list(hunks),
            "current_version": None if current is None else version_of(current),
            "change": dict(wish.change),
            **{name: version_of(data) for name, data in sides.items() if data is not None},
        }
    )
    text, seen = _current_text(wish, refusal)
    advice = ADVICE.get(refusal.reason) or ADVICE[word]
    offer = " A clean merge with what is there now was offered to the person." if merged is not None else ""
    content = f"{word} ({refusal.reason}): {refusal.message} Nothing was changed.{offer}\n{text}What to do: {advice}"
    return Outcome("error", content, seen=seen, conflicts=(conflict,), reason=word, blobs={**blobs, **wish.blobs})


def _current_text(wish: Wish, refusal: Refusal) -> tuple[str, tuple[SeenFile, ...]]:
    """The text as it is now, whole or around the place, and what the model knows by that."""
    entry = wish.current
    if entry is None or entry.kind == "missing":
        return f"{wish.path} is not there now.\n", (SeenFile(path=wish.path, version=None, whole=True),)
    text = read_text(entry.data) if entry.kind == "file" and entry.data is not None else None
    if text is None or isinstance(text, Refusal) or entry.data is None:
        return "", ()
    lines = split_lines(text.text).bodies
    whole = len(text.text) <= WHOLE_MAX
    first, last = (1, len(lines)) if whole else _around(refusal, len(lines))
    body = "\n".join(shown(line[:1000]) for line in lines[first - 1 : last])
    unsaved = " (unsaved text in the editor)" if entry.buffer is not None else ""
    head = f"{wish.path}{unsaved}, lines {first}-{last} of {len(lines)}, version {entry.version}, as it is now:\n"
    return f"{head}{body}\n", (seen_file(entry.path, entry.data, entry.version, whole=whole),)


def _around(refusal: Refusal, lines: int) -> tuple[int, int]:
    """First and last line (from 1) around the hunks that did not fit."""
    failing = [hunk for hunk in refusal.hunks if hunk.state == "conflict" and hunk.line]
    places = [line for hunk in failing[:1] for line in (hunk.candidate_lines or [hunk.line or 1])] or [1]
    return max(1, min(places) - AROUND), min(lines, min(max(places), min(places) + 200) + AROUND)
