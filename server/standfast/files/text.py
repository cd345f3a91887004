"""A file's bytes as text, and back without losing one (POLICY 2 and 7). Pure.

A line ends at LF only; a CR before it belongs to the ending. Bytes that are not UTF-8 travel as surrogate escapes, so
that an ASCII change leaves them as they are. BOM and a missing final newline are facts of the text, not of its lines.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace

from standfast.files.refusal import Refusal

WIDE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class FileText:
    """Text without its BOM. `utf8` false: some bytes are surrogate escapes and only ASCII may be changed."""

    text: str
    bom: bool = False
    utf8: bool = True

    def encode(self) -> bytes:
        """The file's bytes."""
        data = self.text.encode("utf-8", "surrogateescape")
        return codecs.BOM_UTF8 + data if self.bom else data

    def with_text(self, text: str) -> FileText:
        return replace(self, text=text)


@dataclass(frozen=True, slots=True)
class Lines:
    """Bodies without endings, and the ending of each: LF, CRLF, or nothing (the last line of an unterminated file)."""

    bodies: list[str]
    endings: list[str]

    def join(self) -> str:
        if len(set(self.endings)) == 1:
            return self.endings[0].join(self.bodies) + self.endings[0]
        return "".join([body + ending for body, ending in zip(self.bodies, self.endings, strict=True)])


def read_text(data: bytes) -> FileText | Refusal:
    """Bytes → text. Refused: `unsupported_encoding` (UTF-16, UTF-32), `binary` (NUL bytes)."""
    if data.startswith(WIDE_MARKS):
        return Refusal(
            "unsupported_encoding", "The file is UTF-16 or UTF-32; it was left as it is. Convert it to UTF-8 first."
        )
    if b"\0" in data:
        return Refusal("binary", "The file holds NUL bytes, so it is no text; it was left as it is.")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        return FileText(body.decode(), bom)
    except UnicodeDecodeError:
        return FileText(body.decode("utf-8", "surrogateescape"), bom, utf8=False)


def split_lines(text: str) -> Lines:
    """Cut at LF and nowhere else (U+2028, FF, NEL and VT are content)."""
    bodies = text.split("\n")
    last = bodies.pop()
    endings = ["\n"] * len(bodies)
    if "\r" in text:
        for index, body in enumerate(bodies):
            if body.endswith("\r"):
                bodies[index] = body[:-1]
                endings[index] = "\r\n"
    if last:
        bodies.append(last)
        endings.append("")
    return Lines(bodies, endings)


def common_ending(text: str) -> str:
    """The ending that most lines have; LF when there is none."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def line_at(text: str, offset: int) -> int:
    """The line, from 1, of a character offset."""
    return text.count("\n", 0, offset) + 1


def shown(text: str) -> str:
    """Text as a model or a person may see it: bytes that are no UTF-8 as U+FFFD (never written back)."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def has_lone_surrogate(text: str) -> bool:
    """Whether text cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
