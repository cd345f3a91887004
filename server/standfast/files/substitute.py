"""The two small edits beside the patch: one text for another in a file, and a file's whole content. Pure.

Models write LF; the file keeps its own endings, its BOM and its encoding (design.md "Files").
"""

from __future__ import annotations

from bisect import bisect_right

from standfast.events.types import HunkState
from standfast.files.patch_apply import CANDIDATES_MAX
from standfast.files.patch_match import LineIndex, is_telling
from standfast.files.refusal import Refusal
from standfast.files.text import FileText, common_ending, has_lone_surrogate, line_at, read_text, split_lines

NOT_ASCII = Refusal(
    "unsupported_encoding", "The file is not UTF-8, so only ASCII text of it can be changed. Nothing was changed."
)


def replace_text(
    text: FileText, old: str, new: str, *, everywhere: bool = False, at_line: int | None = None
) -> FileText | Refusal:
    """Put `new` where `old` stands exactly once (or `everywhere`, or at the place that begins in `at_line`).

    Refused: `malformed`, `ambiguous` (candidates told), `already_applied`, `context_not_found`, `indentation_mismatch`,
    `unsupported_encoding`.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old or old == new or has_lone_surrogate(old + new):
        return Refusal(
            "malformed", "old_text must be some text of the file, and new_text another one. Nothing was changed."
        )
    plain, returns = _without_returns(text.text)
    places = _places(plain, old, len(old) if everywhere else 1)
    if at_line is not None:
        places = [place for place in places if line_at(plain, place) == at_line] or places
    if not places:
        return _missing(plain, old, new)
    if len(places) > 1 and not everywhere:
        lines = list(dict.fromkeys(line_at(plain, place) for place in places))[:CANDIDATES_MAX]
        state = HunkState(index=0, state="conflict", reason="ambiguous", line=lines[0], candidate_lines=lines)
        said = ", ".join(map(str, lines))
        return Refusal(
            "ambiguous",
            f"old_text stands at {len(places)} places (lines {said}): add text around it.",
            None,
            0,
            (state,),
        )
    if not text.utf8 and not ((old + new).isascii() and all(_stands_alone(plain, place, len(old)) for place in places)):
        return NOT_ASCII
    out: list[str] = []
    at = 0
    for place in places:
        start, end = place + bisect_right(returns, place - 1), place + len(old)
        end += bisect_right(returns, end - 1)
        out += text.text[at:start], _with_endings(new, text.text[start:end], common_ending(text.text))
        at = end
    return text.with_text("".join((*out, text.text[at:])))


def whole_content(before: bytes | None, content: str) -> bytes | Refusal:
    """A file's whole new content as bytes, with the endings and the BOM of the file that it replaces."""
    if has_lone_surrogate(content) or "\0" in content:
        return Refusal("malformed", "The content holds NUL or half a surrogate pair, which no text file can hold.")
    if before is None:
        return content.encode()
    text = read_text(before)
    if isinstance(text, Refusal):
        return text
    if not text.utf8:
        return Refusal(
            "unsupported_encoding",
            "The file is not UTF-8, so writing it whole would spoil what cannot be shown. Use edit_file on its ASCII lines.",
        )
    if common_ending(text.text) == "\r\n" and "\r\n" in text.text:
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    return FileText(content.removeprefix("\ufeff"), text.bom or content.startswith("\ufeff")).encode()


def _without_returns(text: str) -> tuple[str, list[int]]:
    """Text with CRLF as LF, and for each CR left out the offset, in the text without, of the LF behind it."""
    if "\r\n" not in text:
        return text, []
    returns: list[int] = []
    parts = text.split("\r\n")
    at = -1
    for part in parts[:-1]:
        at += len(part) + 1
        returns.append(at)
    return "\n".join(parts), returns


def _places(text: str, wanted: str, step: int) -> list[int]:
    """Offsets, ascending, at least `step` apart (overlapping places count as several when one is sought)."""
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + step)
    return found


def _with_endings(new: str, replaced: str, common: str) -> str:
    """`new` with the endings of the text that it replaces, line by line; further lines take the last of them."""
    lines, endings = new.split("\n"), split_lines(replaced).endings
    endings = [ending for ending in endings if ending]
    last = endings[-1] if endings else common
    out = [line + (endings[number] if number < len(endings) else last) for number, line in enumerate(lines[:-1])]
    return "".join((*out, lines[-1]))


def _stands_alone(text: str, place: int, length: int) -> bool:
    """No byte of another encoding touches the match: it might be half of a character (GBK, Shift JIS)."""
    around = text[max(0, place - 1) : place] + text[place + length : place + length + 1]
    return around.isascii()


def _missing(plain: str, old: str, new: str) -> Refusal:
    """Why old_text is not found."""
    if is_telling(new) and plain.count(new) == 1:
        line = line_at(plain, plain.index(new))
        state = HunkState(index=0, state="applied", reason="already_applied", line=line)
        return Refusal("already_applied", f"new_text is there already, at line {line}.", None, 0, (state,))
    wanted = split_lines(old).bodies
    index = LineIndex(split_lines(plain).bodies, wanted)
    near = index.find_unindented(wanted)[:CANDIDATES_MAX]
    if near:
        lines = [place + 1 for place in near]
        state = HunkState(
            index=0, state="conflict", reason="indentation_mismatch", line=lines[0], candidate_lines=lines
        )
        said = f"old_text differs only in white space from line {lines[0]}: copy it exactly."
        return Refusal("indentation_mismatch", said, None, 0, (state,))
    place = index.divergence(wanted)
    state = HunkState(index=0, state="conflict", reason="context_not_found", line=None if place is None else place + 1)
    return Refusal("context_not_found", "old_text is not in the file.", None, 0, (state,))
