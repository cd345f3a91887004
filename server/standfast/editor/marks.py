"""Where the lines of a text are after the person went on typing (issue B.5: the range follows the text). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from standfast.editor.texts import split_lines
from standfast.files.difference import Block, changed_blocks


class Marks:
    """Lines of one text, found again in later versions of it. The newest comparison is kept."""

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        self._newest = text
        self._blocks: list[Block] = []

    def now(self, line: int, text: str, lines: Sequence[str]) -> int:
        """The line, from 1, in `text` (whose lines are `lines`). One that was changed itself: its place among the changed ones."""
        if text != self._newest:
            self._newest, self._blocks = text, list(changed_blocks(self._lines, lines))
        return moved(line - 1, self._blocks) + 1


def moved(line: int, blocks: Sequence[Block]) -> int:
    """A line of the old side, from 0, on the new side of the blocks that differ."""
    shift = 0
    for old_start, old_end, new_start, new_end in blocks:
        if line < old_start:
            break
        if line < old_end:
            return new_start + min(line - old_start, max(0, new_end - new_start - 1))
        shift = new_end - old_end
    return line + shift
