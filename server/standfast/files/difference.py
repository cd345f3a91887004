"""A unified difference for people, quick on large files and bounded in size. Pure.

difflib alone is slow on 50,000 lines. Lines that stand once on each side, in the same order, cut the file into small
gaps first; difflib sees only those.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from standfast.files.refusal import Refusal
from standfast.files.text import read_text, shown

CONTEXT = 3
GAP_MAX = 1_500
"""Lines of a gap that difflib is asked about; a larger one is shown as removed and added."""
CHARS_MAX = 200_000
SIZE_MAX = 4 * 1024 * 1024
"""Bytes of a side; of larger files no difference is made (the blobs are there for who wants to see)."""

Block = tuple[int, int, int, int]
"""from and to on the old side, from and to on the new side"""


def unified(path: str, before: bytes | None, after: bytes | None, *, from_path: str | None = None) -> str | None:
    """Text as `diff -u` gives it; None where a side is no text or too large. Cut (and said so) above CHARS_MAX."""
    if max(len(before or b""), len(after or b"")) > SIZE_MAX:
        return None
    sides: list[list[str]] = []
    for data in (before, after):
        text = read_text(data or b"")
        if isinstance(text, Refusal):
            return None
        sides.append(_lines(text.text))
    head = [
        f"--- {'/dev/null' if before is None else 'a/' + (from_path or path)}",
        f"+++ {'/dev/null' if after is None else 'b/' + path}",
    ]
    out: list[str] = []
    size = 0
    for line in _body(*sides):
        size += len(line) + 1
        if size > CHARS_MAX:
            out.append(f"… cut here: the difference is longer than {CHARS_MAX} characters")
            break
        out.append(line)
    return shown("\n".join((*head, *out)) + "\n") if out else ""


def first_change(before: bytes, after: bytes) -> int | None:
    """The line of `after`, from 1, at which it begins to be another text; None where it does not, or a side is no text."""
    sides = [read_text(before), read_text(after)]
    texts = [side.text for side in sides if not isinstance(side, Refusal)]
    if len(texts) < 2:
        return None
    old, new = (text.split("\n") for text in texts)
    same = next((number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        same = min(len(old), len(new)) if len(old) != len(new) else None
    return None if same is None else min(same, len(new) - 1) + 1


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _body(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    group: list[Block] = []
    for block in changed_blocks(old, new):
        if group and block[0] - group[-1][1] > 2 * CONTEXT:
            yield from _hunk(old, new, group)
            group = []
        group.append(block)
    if group:
        yield from _hunk(old, new, group)


def _hunk(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block]) -> Iterator[str]:
    before = min(CONTEXT, blocks[0][0])
    behind = min(CONTEXT, len(old) - blocks[-1][1])
    old_from, old_to = blocks[0][0] - before, blocks[-1][1] + behind
    new_from, new_to = blocks[0][2] - before, blocks[-1][3] + behind
    yield f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@"
    at = old_from
    for old_start, old_end, new_start, new_end in blocks:
        yield from (f" {line}" for line in old[at:old_start])
        yield from (f"-{line}" for line in old[old_start:old_end])
        yield from (f"+{line}" for line in new[new_start:new_end])
        at = old_end
    yield from (f" {line}" for line in old[at:old_to])


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """The blocks that differ, ascending."""
    lead = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        lead += 1
    tail = 0
    while tail < min(len(old), len(new)) - lead and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    inner_old, inner_new = old[lead : len(old) - tail], new[lead : len(new) - tail]
    at_old = at_new = 0
    for old_place, new_place in (*_landmarks(inner_old, inner_new), (len(inner_old), len(inner_new))):
        for a, b, c, d in _gap(inner_old[at_old:old_place], inner_new[at_new:new_place]):
            yield lead + at_old + a, lead + at_old + b, lead + at_new + c, lead + at_new + d
        at_old, at_new = old_place + 1, new_place + 1


def _gap(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    if not old and not new:
        return
    if not old or not new or max(len(old), len(new)) > GAP_MAX:
        yield 0, len(old), 0, len(new)
        return
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield a, b, c, d


def _landmarks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that stand once on each side, the longest run of them that keeps the order."""
    once_old, once_new = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if once_new[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(old) if once_old[line] == 1 and line in places]
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for number, (_, new_place) in enumerate(pairs):
        pile = bisect_left(tops, new_place)
        previous.append(ends[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(new_place)
            ends.append(number)
        else:
            tops[pile], ends[pile] = new_place, number
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]
