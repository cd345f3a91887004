"""A document's text, its lines as LSP counts them, and what edits do to it. Pure.

pygls' own document splits lines wherever Python does (form feed, U+2028, …), which shifts every edit below; an editor breaks
lines at LF, CRLF and CR only, so lines are split here. Columns go through pygls' codec (UTF-8, UTF-16 or UTF-32, d18).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsprotocol import types
from pygls.workspace import PositionCodec

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none, so that "a\\n" has two."""
    lines = _LINE.findall(text)
    if len(lines) > 1 and lines[-1] == "" and not lines[-2].endswith(("\n", "\r")):
        lines.pop()
    return lines or [""]


def bare(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


class Document:
    """An open document as one client reports it. Edits cost the lines they touch."""

    def __init__(self, uri: str, version: int, text: str, codec: PositionCodec) -> None:
        self.uri = uri
        self.version = version
        self._codec = codec
        self._lines = split_lines(text)
        self._text: str | None = text

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    @property
    def lines(self) -> Sequence[str]:
        return self._lines

    def change(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int) -> None:
        """Apply a didChange: each change to the outcome of the one before."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                self._replace(change.range, change.text)
            else:
                self._lines = split_lines(change.text)
            self._text = None
        self.version = version

    def _replace(self, place: types.Range, text: str) -> None:
        start_line, start = self._index(place.start)
        end_line, end = self._index(place.end)
        if (end_line, end) < (start_line, start):
            end_line, end = start_line, start
        first, last = max(0, start_line - 1), min(len(self._lines), end_line + 2)  # a CR and a LF may come together
        before = "".join(self._lines[first:start_line]) + self._lines[start_line][:start]
        after = self._lines[end_line][end:] + "".join(self._lines[end_line + 1 : last])
        fresh = split_lines(before + text + after)
        if last < len(self._lines) and fresh[-1] == "":
            fresh.pop()
        self._lines[first:last] = fresh

    def _index(self, position: types.Position) -> tuple[int, int]:
        """(line, index in code points); beyond the end means the end, as LSP says."""
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        line = bare(self._lines[position.line])
        return position.line, from_client(line, position.character, self._codec)


def from_client(line: str, column: int, codec: PositionCodec) -> int:
    """A client's column as an index in code points. A column within one character means before it."""
    if line.isascii():
        return min(column, len(line))
    units = 0
    for index, character in enumerate(line):
        units += codec.client_num_units(character)
        if units > column:
            return index
    return len(line)


def to_client(line: str, index: int, codec: PositionCodec) -> int:
    """An index in code points as the client's column."""
    head = line[:index]
    return len(head) if head.isascii() else codec.client_num_units(head)


def minimal_edits(before: str, after: str, codec: PositionCodec) -> list[types.TextEdit]:
    """One edit that turns `before` into `after`, without the lines they share at both ends (cursor and folds stay)."""
    if before == after:
        return []
    old, new = split_lines(before), split_lines(after)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    start = types.Position(head, 0) if head < len(old) else _end_of(old, codec)
    end = types.Position(old_end, 0) if old_end < len(old) else _end_of(old, codec)
    return [types.TextEdit(types.Range(start, end), "".join(new[head:new_end]))]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _end_of(lines: Sequence[str], codec: PositionCodec) -> types.Position:
    last = bare(lines[-1])
    return types.Position(len(lines) - 1, to_client(last, len(last), codec))
