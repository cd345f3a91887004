"""Bytes in, message bodies out: the base protocol of LSP, read strictly and in bounded memory (design.md "Transport", ATK-48).

Pure. Accepted: header names in any case, with or without spaces around the value, lines ended by CRLF or LF.
Whatever is wrong ends the stream: after a bad frame nobody knows where the next one begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from standfast.protocol.errors import INVALID_REQUEST, PARSE_ERROR

BODY_MAX = 64 * 1024 * 1024
HEADER_MAX = 8 * 1024
_LENGTH_DIGITS_MAX = 10
_NAMES = (b"content-length", b"content-type")
_NO_LSP = "This is no LSP: a header line is neither Content-Length nor Content-Type."
_CHARSETS = frozenset({"utf-8", "utf8"})


@dataclass(frozen=True, slots=True)
class BadFrame:
    """The stream cannot be read on: answer with id null, then close."""

    code: int
    message: str


class Framer:
    """Takes a stream in pieces of any size. `feed` gives the bodies that became whole, and a BadFrame as the last thing."""

    def __init__(self, *, body_max: int = BODY_MAX) -> None:
        self._body_max = body_max
        self._held = bytearray()
        self._length: int | None = None
        """Of the body that is being read; None: in a header."""
        self._scanned = 0
        """Bytes of the header in which no empty line was found."""
        self.dead = False

    @property
    def within(self) -> bool:
        """A message has begun and is not whole (a slow client is timed only then)."""
        return bool(self._held) or self._length is not None

    def feed(self, data: bytes) -> list[bytes | BadFrame]:
        """Add bytes; after a BadFrame nothing more comes."""
        if self.dead:
            return []
        self._held += data
        found: list[bytes | BadFrame] = []
        while not self.dead:
            item = self._header() if self._length is None else self._body()
            if item is None:
                break
            if isinstance(item, bytes | BadFrame):
                found.append(item)
        return found

    def _body(self) -> bytes | None:
        length = self._length or 0
        if len(self._held) < length:
            return None
        body = bytes(self._held[:length])
        del self._held[:length]
        self._length = None
        return body

    def _header(self) -> bool | BadFrame | None:
        """Read a header if it is whole: True, then the body's length is known."""
        if not self._scanned and not _may_begin_header(self._held):
            return self._bad(PARSE_ERROR, _NO_LSP)
        end, after = _header_end(self._held, self._scanned)
        if end > HEADER_MAX or (end < 0 and len(self._held) > HEADER_MAX):
            return self._bad(PARSE_ERROR, f"The header is longer than {HEADER_MAX} bytes.")
        if end < 0:
            self._scanned = max(0, self._held.rfind(b"\n") - 1)
            return None
        lines = bytes(self._held[:end]).replace(b"\r\n", b"\n").split(b"\n")
        del self._held[:after]
        self._scanned = 0
        return self._take(lines)

    def _take(self, lines: list[bytes]) -> bool | BadFrame:
        length: str | None = None
        for line in lines:
            header = _read_line(line)
            if isinstance(header, str):
                return self._bad(PARSE_ERROR, header)
            name, value = header
            if name == "content-type":
                if not _charset_fits(value):
                    return self._bad(PARSE_ERROR, "Only the charset utf-8 is spoken here.")
            elif length is not None:
                return self._bad(PARSE_ERROR, "The header gives Content-Length twice.")
            else:
                length = value
        return self._set_length(length)

    def _set_length(self, value: str | None) -> bool | BadFrame:
        if value is None:
            return self._bad(PARSE_ERROR, "The header gives no Content-Length.")
        if not (value.isascii() and value.isdigit()):
            return self._bad(PARSE_ERROR, "Content-Length is not a number of bytes.")
        if len(value) > _LENGTH_DIGITS_MAX or int(value) > self._body_max:
            return self._bad(INVALID_REQUEST, f"A message has at most {self._body_max} bytes.")
        self._length = int(value)
        return True

    def _bad(self, code: int, message: str) -> BadFrame:
        self.dead = True
        self._held.clear()
        return BadFrame(code, f"{message} The connection is closed.")


def _may_begin_header(held: bytearray) -> bool:
    """Whether the stream's next bytes can be a header: seen at the first wrong byte, e.g. of an HTTP request (ATK-02)."""
    start = bytes(held[: max(map(len, _NAMES))]).lower()
    return any(start.startswith(name) or name.startswith(start) for name in _NAMES)


def _header_end(held: bytearray, start: int) -> tuple[int, int]:
    """(end of the last header line, start of the body); (-1, -1) if the empty line is not there yet."""
    line = held.find(b"\n", start)
    while line >= 0:
        for empty in (b"\n", b"\r\n"):
            if held.startswith(empty, line + 1):
                return line, line + 1 + len(empty)
        line = held.find(b"\n", line + 1)
    return -1, -1


def _read_line(line: bytes) -> tuple[str, str] | str:
    """One header line as (lower-case name, value), or what is wrong with it."""
    name, colon, value = line.removesuffix(b"\r").partition(b":")
    key = name.strip().lower()
    if not colon or key not in _NAMES:
        return _NO_LSP
    return key.decode(), value.strip().decode("latin-1")


def _charset_fits(content_type: str) -> bool:
    """The type itself is not looked at; a charset that is named has to be UTF-8."""
    for parameter in content_type.lower().split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in _CHARSETS:
            return False
    return True
