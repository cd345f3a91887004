"""The patch envelope as values: sections of files, hunks of lines (POLICY.md; issue B.1). Pure; looks at no file.

    *** Begin Patch
    *** Add File: path            lines with `+`
    *** Delete File: path
    *** Update File: path         then optionally `*** Move to: path`, then hunks
    @@ anchor                     several in a row: outer, then inner; `@@ -1,2 +1,3 @@` is no anchor
     context / -removed / +added  an empty line is an empty context line
    *** End of File               the hunk ends where the file ends
    *** End Patch

A marker stands at the line's very start, so a context line that quotes one is content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from standfast.files.refusal import Refusal, Refused, refuse
from standfast.files.text import has_lone_surrogate

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.*)")
MOVE = re.compile(r"\*\*\* Move to: (.*)")
UNIFIED = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file. `lines` are (op, text), op one of space, `-`, `+`.

    `bare_tail`: how many of the last context lines were quite empty in the patch; they may be mere layout.
    `end_quoted`: the end marker behind it was padded, so it could be a context line with this text, of a patch that was cut.
    """

    anchors: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    end_of_file: bool = False
    bare_tail: int = 0
    end_quoted: str | None = None

    @property
    def old(self) -> list[str]:
        """What the file is believed to hold."""
        return [text for op, text in self.lines if op != "+"]

    @property
    def new(self) -> list[str]:
        """What it is to hold instead."""
        return [text for op, text in self.lines if op != "-"]

    @property
    def changes(self) -> bool:
        return any(op != " " for op, _ in self.lines)

    def without_tail(self) -> Hunk:
        """The hunk without its bare empty last lines."""
        return Hunk(self.anchors, self.lines[: len(self.lines) - self.bare_tail], self.end_of_file)


@dataclass(frozen=True, slots=True)
class Section:
    """What a patch wants of one file. `content` is an added file's lines."""

    change: Literal["add", "delete", "update"]
    path: str
    move_to: str | None = None
    hunks: tuple[Hunk, ...] = ()
    content: tuple[str, ...] = ()


def parse_patch(patch: str) -> tuple[Section, ...] | Refusal:
    """The sections in order. Refused: `malformed`, `no_hunks`, `empty_patch`."""
    if has_lone_surrogate(patch):
        return Refusal(
            "malformed", "The patch holds half a surrogate pair, which no file can hold. Nothing was changed."
        )
    lines = [line[:-1] if line.endswith("\r") else line for line in patch.split("\n")]
    try:
        return tuple(_Reader(*_envelope(lines)).sections())
    except Refused as refused:
        return refused.refusal


def _envelope(lines: list[str]) -> tuple[list[str], str | None]:
    """The lines between the markers, and the end marker as a context line would hold it, if it was padded.

    A patch without its end was cut, and a cut patch is not applied (case 091).
    """
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if not filled or lines[filled[0]].strip() != BEGIN:
        raise refuse("malformed", f"A patch begins with the line '{BEGIN}'. Nothing was changed.")
    end = lines[filled[-1]]
    if end.strip() != END or filled[0] == filled[-1]:
        raise refuse(
            "malformed", f"The patch has no '{END}' at its end, so it was cut. Nothing was changed; send it whole."
        )
    inner = lines[filled[0] + 1 : filled[-1]]
    if not any(line.strip() for line in inner):
        raise refuse("empty_patch", "The patch changes nothing.")
    return inner, end[1:].rstrip() if end[0] == " " else None


class _Reader:
    """Reads the lines of an envelope from first to last."""

    def __init__(self, lines: Sequence[str], end_quoted: str | None = None) -> None:
        self.lines = lines
        self.end_quoted = end_quoted
        self.at = 0

    def sections(self) -> list[Section]:
        found: list[Section] = []
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            self.at += 1
            if not line:
                continue
            begin = self.at
            found.append(self.section(line))
            if any("\0" in inner for inner in self.lines[begin : self.at]):
                said = "The patch holds NUL, which no text file can hold. Nothing was changed."
                raise Refused(Refusal("malformed", said, found[-1].path))
        return found

    def section(self, line: str) -> Section:
        header = HEADER.fullmatch(line)
        if header is None:
            raise refuse(
                "malformed", f"Expected '*** Add File:', '*** Update File:' or '*** Delete File:', found: {line[:80]}"
            )
        path = header[2].strip()
        if not path:
            raise refuse("malformed", "A section of the patch names no file. Nothing was changed.")
        if header[1] == "Delete":
            return Section("delete", path)
        if header[1] == "Add":
            return Section("add", path, content=tuple(self.added(path)))
        return self.update(path)

    def added(self, path: str) -> list[str]:
        content: list[str] = []
        bare = 0
        while (line := self.peek()) is not None and not HEADER.fullmatch(line.strip()):
            if line.startswith("+"):
                content += [*[""] * bare, line[1:]]
                bare = 0
            elif not line.strip():  # an empty line of the file if more follows, else layout
                bare += 1
            else:
                raise Refused(
                    Refusal("malformed", f"In '*** Add File' each line begins with '+', found: {line[:80]}", path)
                )
            self.at += 1
        return content

    def update(self, path: str) -> Section:
        move = MOVE.fullmatch((self.peek() or "").rstrip())
        if move:
            self.at += 1
            if not move[1].strip():
                raise Refused(Refusal("malformed", "'*** Move to:' names no file. Nothing was changed.", path))
        hunks: list[Hunk] = []
        while (line := self.peek()) is not None and not HEADER.fullmatch(line.rstrip()):
            if not hunks and not line.strip():
                self.at += 1
                continue
            hunks.append(self.hunk(path))
        if not any(hunk.changes for hunk in hunks) and not move:
            raise Refused(
                Refusal("no_hunks", f"The patch says nothing to change in {path}. Nothing was changed.", path)
            )
        return Section("update", path, move[1].strip() if move else None, tuple(hunks))

    def hunk(self, path: str) -> Hunk:
        anchors = self.anchors()
        lines: list[tuple[str, str]] = []
        bare, end_of_file = 0, False
        while (line := self.peek()) is not None and not _is_border(line):
            if line.rstrip() == END_OF_FILE:
                end_of_file = True
                self.at += 1
                break
            if line and line[0] not in " +-":
                raise Refused(
                    Refusal("malformed", f"A hunk's line begins with ' ', '-' or '+', found: {line[:80]}", path)
                )
            bare = 0 if line else bare + 1
            lines.append((line[0], line[1:]) if line else (" ", ""))
            self.at += 1
        while end_of_file and self.peek() == "":
            self.at += 1
        if not lines:
            raise Refused(Refusal("no_hunks", f"A hunk of {path} has no lines. Nothing was changed.", path))
        end_quoted = self.end_quoted if self.peek() is None else None
        return Hunk(anchors, tuple(lines), end_of_file, bare, end_quoted)

    def anchors(self) -> tuple[str, ...]:
        found: list[str] = []
        while (line := self.peek()) is not None and line.startswith("@@"):
            text = line[3:] if line[2:3] == " " else line[2:]
            if text.strip() and not UNIFIED.fullmatch(text.strip()):
                found.append(text)
            self.at += 1
        return tuple(found)

    def peek(self) -> str | None:
        return self.lines[self.at] if self.at < len(self.lines) else None


def _is_border(line: str) -> bool:
    """Whether a new hunk or section begins here."""
    return line.startswith("@@") or HEADER.fullmatch(line.rstrip()) is not None
