"""Where a hunk belongs in a file: by an index of lines, in tiers, only where one place is left (POLICY 3, 4, 5). Pure.

200 hunks on 50,000 lines cost one scan, not 200: it notes where the lines of all hunks stand, and each hunk looks at the
places of its rarest line.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

from standfast.files.patch_parse import Hunk

ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        "\u2026": "...",
        "\u00ad": None,
        "\u200b": None,
        "\ufeff": None,
    }
)
COMMON_WORDS = frozenset(
    (
        *("begin", "break", "catch", "continue", "default", "do", "done", "else", "end", "endif", "esac", "false"),
        *("fi", "finally", "none", "null", "pass", "return", "then", "true", "try"),
    )
)
ALIGNMENTS_MAX = 64
"""A line that stands more often than this says nothing about where a hunk was meant."""


def _exact(line: str) -> str:
    return line


def _trailing(line: str) -> str:
    return line.rstrip()


def _folded(line: str) -> str:
    if line.isascii():
        return line.rstrip()
    return unicodedata.normalize("NFC", line.translate(ALIKE)).rstrip()


def _unindented(line: str) -> str:
    return _folded(line).strip()


class _Tier:
    """The file's lines under one way of looking, and all places of those lines that will be asked about."""

    def __init__(self, keys: list[str], key: Callable[[str], str], asked: Collection[str]) -> None:
        self.keys = keys
        self.key = key
        self.positions: dict[str, list[int]] = {key(line): [] for line in asked}
        for place in [place for place, line in enumerate(keys) if line in self.positions]:
            self.positions[keys[place]].append(place)

    def find(self, wanted: Sequence[str]) -> list[int]:
        """All first positions where `wanted` stands, ascending."""
        if not wanted:
            return []
        keys = [self.key(line) for line in wanted]
        rarest = min(range(len(keys)), key=lambda offset: len(self.positions[keys[offset]]))
        starts = [position - rarest for position in self.positions[keys[rarest]]]
        return [start for start in starts if start >= 0 and self.keys[start : start + len(keys)] == keys]


class LineIndex:
    """A file's lines, ready to be asked where others stand: those of `asked`, and no others (KeyError).

    A tier is built when the one before has found nothing.
    """

    def __init__(self, lines: list[str], asked: Collection[str]) -> None:
        self.lines = lines
        self.asked = asked
        self._found: dict[tuple[str, ...], Sequence[int]] = {}

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def exact(self) -> _Tier:
        return _Tier(self.lines, _exact, self.asked)

    @cached_property
    def trailing(self) -> _Tier:
        return _Tier([line.rstrip() for line in self.lines], _trailing, self.asked)

    @cached_property
    def folded(self) -> _Tier:
        keys = self.trailing.keys
        plain = all(map(str.isascii, keys))
        if plain and all(map(str.isascii, self.asked)):
            return self.trailing
        return _Tier(keys if plain else [_folded(line) for line in keys], _folded, self.asked)

    @cached_property
    def unindented(self) -> _Tier:
        return _Tier([line.strip() for line in self.folded.keys], _unindented, self.asked)

    def find(self, wanted: Sequence[str]) -> Sequence[int]:
        """Candidates of the first tier that hits, ascending; white space at a line's start always counts."""
        key = tuple(wanted)
        if key not in self._found:
            self._found[key] = self.exact.find(wanted) or self.trailing.find(wanted) or self.folded.find(wanted)
        return self._found[key]

    def find_anchor(self, anchor: str) -> Sequence[int]:
        """Where an anchor's line stands. An anchor says where to look, not what to change: its indentation is free."""
        return self.find([anchor]) or self.unindented.find([anchor])

    def find_unindented(self, wanted: Sequence[str]) -> list[int]:
        """Where only the indentation differs: to tell, never to apply."""
        return self.unindented.find(wanted)

    def divergence(self, wanted: Sequence[str]) -> int | None:
        """The position of the first line that differs, in the place that resembles `wanted` most; None: nothing does."""
        votes: Counter[int] = Counter()
        for offset, line in enumerate(wanted):
            positions = self.folded.positions[_folded(line)] if line.strip() else []
            if len(positions) <= ALIGNMENTS_MAX:
                votes.update(position - offset for position in positions)
        if not votes:
            return None
        start = min(votes, key=lambda place: (-votes[place], abs(place)))
        for offset, line in enumerate(wanted):
            place = start + offset
            if 0 <= place < len(self.lines) and self.folded.keys[place] != _folded(line):
                return place
        return max(0, min(start + len(wanted) - 1, len(self.lines) - 1))


def is_already_there(index: LineIndex, hunk: Hunk) -> int | None:
    """The position where the hunk's result stands already, exactly once (POLICY 5); None: not so, or too trivial to tell."""
    new = hunk.new
    found = index.find(new)
    if len(found) != 1:
        return None
    if len(new) == len(index):
        return found[0]
    added = [text for op, text in hunk.lines if op == "+"]
    if added:
        telling = any(not _is_trivial(line) for line in added)
        return found[0] if telling else None
    between = len(hunk.lines) > 2 and hunk.lines[0][0] == " " == hunk.lines[-1][0]
    return found[0] if between and any(not _is_trivial(line) for line in new) else None


def is_telling(text: str) -> bool:
    """Whether a text is long enough that finding it once says something."""
    return any(not _is_trivial(line) for line in text.split("\n"))


def _is_trivial(line: str) -> bool:
    words = "".join(char if char.isalnum() else " " for char in line).split()
    return sum(map(len, words)) < 2 or (len(words) == 1 and words[0].lower() in COMMON_WORDS)


def settle_order(candidates: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]]) -> list[int | None]:
    """One place for each hunk where the order of hunks leaves one, else None (POLICY 4).

    `candidates`: ascending first positions, at least one each. `spans`: from and to, relative, what the hunk changes.
    If the hunks stand in file order, the earliest and the latest way to place them all are compared: where both agree,
    there is no other. If they do not, order says nothing and only a single candidate counts.
    """
    earliest = _earliest(candidates, spans)
    if earliest is None:
        return [places[0] if len(places) == 1 else None for places in candidates]
    latest = _latest(candidates, spans)
    return [first if first == last else None for first, last in zip(earliest, latest, strict=True)]


def _earliest(candidates: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]]) -> list[int] | None:
    chosen: list[int] = []
    free_from = 0
    for places, (first, last) in zip(candidates, spans, strict=True):
        number = bisect_left(places, free_from - first)
        if number == len(places):
            return None
        chosen.append(places[number])
        free_from = places[number] + last
    return chosen


def _latest(candidates: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]]) -> list[int]:
    """As `_earliest`, from the end; called only where a way exists."""
    chosen: list[int] = []
    free_to: int | None = None
    for places, (first, last) in zip(reversed(candidates), reversed(spans), strict=True):
        number = len(places) if free_to is None else bisect_right(places, free_to - last)
        chosen.append(places[number - 1])
        free_to = places[number - 1] + first
    return chosen[::-1]
