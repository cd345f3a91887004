"""Hunks into a text: all of them, each in its one place, or a refusal that says of each where it stands. Pure.

Byte fidelity (POLICY 2): context keeps its bytes; a replaced line keeps the ending of the line it replaces, an inserted
one takes that of the line before; BOM and a missing final newline survive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from standfast.events.types import HunkState
from standfast.files.patch_match import LineIndex, is_already_there, settle_order
from standfast.files.patch_parse import Hunk
from standfast.files.refusal import Refusal
from standfast.files.text import FileText, Lines, split_lines

CANDIDATES_MAX = 20
"""So many candidate lines are told at most."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The new text, and of each hunk the line (from 1) where it was put."""

    text: FileText
    hunks: tuple[HunkState, ...]


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace `removed` lines from `start` by `added`, as the hunk of this number wants it."""

    start: int
    removed: int
    added: list[str]
    hunk: int


@dataclass(frozen=True, slots=True)
class _Sought:
    """What looking for one hunk gave: candidates (positions from 0), or a reason why there are none."""

    hunk: Hunk
    places: Sequence[int] = ()
    reason: str | None = None
    near: Sequence[int] = ()
    line: int | None = None


def apply_hunks(
    text: FileText, hunks: Sequence[Hunk], *, chosen: Mapping[int, int] | None = None, skip_applied: bool = False
) -> Applied | Refusal:
    """Apply all hunks or none.

    `chosen`: hunk index → line (from 1) that a person chose among the candidates. `skip_applied`: leave out hunks whose
    result is there already (the rest of a half applied patch) instead of refusing. Refused with the reasons of POLICY 3-5
    and 7; `hunks` of the refusal hold the state of each.
    """
    lines = split_lines(text.text)
    index = LineIndex(lines.bodies, {line for hunk in hunks for line in _named(hunk)})
    if any(hunk.end_quoted is not None and index.find([*hunk.old, hunk.end_quoted]) for hunk in hunks):
        return Refusal("malformed", "The patch has no end: its last line is one of the file. Nothing was changed.")
    sought = [_seek(index, hunk, (chosen or {}).get(number)) for number, hunk in enumerate(hunks)]
    found = [number for number, one in enumerate(sought) if one.places]
    order = settle_order([sought[n].places for n in found], [_span(sought[n].hunk) for n in found])
    places = dict(zip(found, order, strict=True))
    states = [_state(number, one, places.get(number)) for number, one in enumerate(sought)]
    left = {"pending", "applied"} if skip_applied else {"pending"}
    failed = next((state for state in states if state.state not in left), None)
    if failed is not None:
        return Refusal(failed.reason or "", _told(failed), hunk_index=failed.index, hunks=tuple(states))
    placed = {n: place for n, place in places.items() if place is not None}
    edits = sorted(
        (edit for n, place in placed.items() for edit in _edits(sought[n].hunk, place, n)), key=lambda edit: edit.start
    )
    reach = {n: range(place, place + len(sought[n].hunk.old)) for n, place in placed.items()}
    problem = _overlap(edits, reach, states) or _encoding(text, edits, lines)
    if problem is not None:
        return problem
    done = (HunkState(index=state.index, state="applied", line=state.line) for state in states)
    joined = _assemble(lines, edits).join()
    if text.bom and not text.text.startswith("\ufeff"):
        joined = joined.removeprefix("\ufeff")  # a patch that quotes the mark does not double it
    return Applied(text.with_text(joined), tuple(done))


# -- finding ----------------------------------------------------------------------------------------------------------


def _named(hunk: Hunk) -> list[str]:
    """All lines that are looked for on behalf of a hunk."""
    quoted = [] if hunk.end_quoted is None else [hunk.end_quoted]
    return [*hunk.anchors, *(text for _, text in hunk.lines), *quoted]


def _seek(index: LineIndex, hunk: Hunk, chosen_line: int | None) -> _Sought:
    """Candidates of one hunk, or the reason why it has none."""
    after = _after_anchors(index, hunk.anchors, chosen_line)
    if isinstance(after, _Sought):
        return after
    if not hunk.old:
        place = after + 1 if hunk.anchors and not hunk.end_of_file else len(index)
        return _Sought(hunk, (place,))
    everywhere = index.find(hunk.old)
    if not everywhere and hunk.bare_tail and len(hunk.lines) > hunk.bare_tail:
        shorter = hunk.without_tail()
        if shorter.old and index.find(shorter.old):
            return _seek(index, shorter, chosen_line)
    if chosen_line is not None and chosen_line - 1 in everywhere:
        return _Sought(hunk, (chosen_line - 1,))
    if hunk.end_of_file and everywhere:
        last = len(index) - len(hunk.old)
        at_end = last in everywhere and last >= after
        return _Sought(hunk, (last,)) if at_end else _Sought(hunk, (), "eof_mismatch", everywhere)
    if hunk.anchors:
        behind = bisect_left(everywhere, after)
        found = everywhere[behind : behind + 1]
        return _Sought(hunk, found) if found else _missing(index, hunk, everywhere)
    return _Sought(hunk, everywhere) if everywhere else _missing(index, hunk, [])


def _after_anchors(index: LineIndex, anchors: Sequence[str], chosen_line: int | None) -> int | _Sought:
    """The position of the innermost anchor (0 without any). The first must be unique, the next is the nearest after it."""
    at = 0
    for depth, anchor in enumerate(anchors):
        places = index.find_anchor(anchor)
        if depth == 0 and chosen_line is not None and chosen_line - 1 in places:
            places = [chosen_line - 1]
        if depth == 0 and len(places) > 1:
            return _Sought(Hunk((), ()), (), "ambiguous", places)
        behind = [place for place in places if depth == 0 or place > at]
        if not behind:
            return _Sought(Hunk((), ()), (), "anchor_not_found")
        at = behind[0]
    return at


def _missing(index: LineIndex, hunk: Hunk, elsewhere: Sequence[int]) -> _Sought:
    """Why the hunk has no place: it is there already, only its indentation differs, or its text is not there."""
    there = is_already_there(index, hunk)
    if there is not None:
        return _Sought(hunk, (), "already_applied", line=there + 1)
    indented = index.find_unindented(hunk.old)
    if indented and not elsewhere:
        return _Sought(hunk, (), "indentation_mismatch", indented)
    differing = index.divergence(hunk.old)
    return _Sought(hunk, (), "context_not_found", elsewhere, None if differing is None else differing + 1)


def _span(hunk: Hunk) -> tuple[int, int]:
    """From and to, relative to the hunk's place, of what it changes; its outer context may be shared with a neighbour."""
    edits = _edits(hunk, 0, 0)
    return (edits[0].start, edits[-1].start + edits[-1].removed) if edits else (0, 0)


def _state(number: int, sought: _Sought, place: int | None) -> HunkState:
    if place is not None:
        return HunkState(index=number, state="pending", line=place + 1)
    places = sought.places or sought.near
    lines = [found + 1 for found in places[:CANDIDATES_MAX]] or None
    reason = sought.reason or "ambiguous"
    state = "applied" if reason == "already_applied" else "conflict"
    line = sought.line or (lines[0] if lines else None)
    return HunkState(index=number, state=state, reason=reason, line=line, candidate_lines=lines)


def _told(state: HunkState) -> str:
    """One sentence about a hunk that did not fit."""
    which = f"Hunk {state.index + 1}"
    lines = ", ".join(map(str, state.candidate_lines or ()))
    near = f" (it resembles line {state.line} most)" if state.line else ""
    sentences = {
        "ambiguous": f"{which} fits at several lines ({lines}): add context or an @@ anchor so that one is left.",
        "anchor_not_found": f"{which}: the line of its @@ anchor is not in the file.",
        "eof_mismatch": f"{which} is to end where the file ends, but its text stands elsewhere (line {lines}).",
        "indentation_mismatch": f"{which} differs only in its indentation from line {lines}: copy tabs and spaces exactly.",
        "already_applied": f"{which} is there already, at line {state.line}.",
        "context_not_found": f"{which}: its old text is not in the file{near}.",
    }
    return sentences[state.reason or "context_not_found"]


# -- changing ---------------------------------------------------------------------------------------------------------


def _edits(hunk: Hunk, place: int, number: int) -> list[_Edit]:
    """The hunk's blocks of change, with the context between them left out."""
    edits: list[_Edit] = []
    at = place
    open_block = False
    for op, text in hunk.lines:
        if op == " ":
            at += 1
            open_block = False
            continue
        if not open_block:
            edits.append(_Edit(at, 0, [], number))
            open_block = True
        block = edits[-1]
        if op == "+":
            block.added.append(text)
        else:
            edits[-1] = _Edit(block.start, block.removed + 1, block.added, number)
            at += 1
    return edits


def _overlap(edits: Sequence[_Edit], reach: Mapping[int, range], states: Sequence[HunkState]) -> Refusal | None:
    """Two hunks that cannot both be meant: both take one line away, or one adds where the other leaves nothing to go by.

    `reach`: hunk index → the lines (from 0) of its old text. The later of the two is told as the one that does not fit.
    """
    removed: dict[int, int] = {}
    for edit in edits:
        gone = range(edit.start, edit.start + edit.removed)
        inside = [edit.start] if not gone and removed.get(edit.start - 1) == removed.get(edit.start) else []
        for line in (*gone, *inside):
            if removed.get(line, edit.hunk) != edit.hunk:
                return _clash(edit.hunk, removed[line], line, states)
        removed |= dict.fromkeys(gone, edit.hunk)
    for hunk, lines in reach.items():
        if lines and all(removed.get(line, hunk) != hunk for line in lines):
            return _clash(hunk, removed[lines[0]], lines[0], states)
    return None


def _clash(one: int, other: int, line: int, states: Sequence[HunkState]) -> Refusal:
    late = max(one, other)
    said = f"Hunk {late + 1} needs line {line + 1}, which hunk {min(one, other) + 1} changes, too. Nothing was changed."
    clash = HunkState(index=late, state="conflict", reason="context_not_found", line=line + 1)
    hunks = tuple(clash if state.index == late else state for state in states)
    return Refusal("context_not_found", said, hunk_index=late, hunks=hunks)


def _encoding(text: FileText, edits: Sequence[_Edit], lines: Lines) -> Refusal | None:
    """A file that is not UTF-8 takes ASCII changes only (POLICY 7)."""
    if text.utf8:
        return None
    for edit in edits:
        removed = lines.bodies[edit.start : edit.start + edit.removed]
        if not all(line.isascii() for line in (*edit.added, *removed)):
            return Refusal(
                "unsupported_encoding",
                "The file is not UTF-8, so only ASCII lines of it can be changed without harm. Nothing was changed.",
            )
    return None


def _assemble(lines: Lines, edits: Sequence[_Edit]) -> Lines:
    bodies: list[str] = []
    endings: list[str] = []
    at = 0
    for edit in edits:
        bodies += lines.bodies[at : edit.start]
        endings += lines.endings[at : edit.start]
        at = edit.start + edit.removed
        replaced = lines.endings[edit.start : at]
        for number, body in enumerate(edit.added):
            ending = replaced[number] if number < len(replaced) else _ending_before(endings, lines)
            bodies.append(body)
            endings.append(ending)
    ends_changed = bool(edits) and at == len(lines.bodies) and bool(edits[-1].added)
    bodies += lines.bodies[at:]
    endings += lines.endings[at:]
    unterminated = bool(lines.endings) and lines.endings[-1] == ""
    open_line = endings.index("") if "" in endings else len(endings)
    if open_line < len(endings) - 1:  # the line that had no ending is not the last any more
        endings[open_line] = _ending_before(endings[:open_line], lines)
    if ends_changed:
        endings[-1] = "" if unterminated else (endings[-1] or "\n")
    return Lines(bodies, endings)


def _ending_before(endings: Sequence[str], lines: Lines) -> str:
    """The ending of the line before; at the file's start that of its first line; in an empty file LF."""
    if endings and endings[-1]:
        return endings[-1]
    if len(endings) > 1:
        return endings[-2]
    return lines.endings[0] if lines.endings and lines.endings[0] else "\n"
