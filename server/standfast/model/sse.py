"""Server-sent events from bytes, cut at any place. Pure, linear, bounded; the event's name is not needed, its data has a type."""

from __future__ import annotations

EVENT_BYTES_MAX = 4 * 1024 * 1024


class EventTooLarge(ValueError):
    """One event is larger than anything a model says in one piece."""


class SseReader:
    """Feed bytes in, take the data of whole events out. What is unfinished at the end is never given out."""

    def __init__(self, bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._held_return = False
        self._bytes_max = bytes_max

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each event that is whole with `chunk`. Raises EventTooLarge."""
        self._buffer += self._with_plain_line_ends(chunk)
        found: list[bytes] = []
        while (end := self._buffer.find(b"\n\n", self._searched)) >= 0:
            block = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            self._searched = 0
            self._check(len(block))
            data = data_of(block)
            if data:
                found.append(data)
        self._searched = max(0, len(self._buffer) - 1)
        self._check(len(self._buffer))
        return found

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            raise EventTooLarge(f"more than {self._bytes_max} bytes")

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        """CRLF and CR as LF. A CR at the end waits for what follows."""
        if self._held_return:
            chunk = b"\r" + chunk
            self._held_return = False
        if b"\r" not in chunk:
            return chunk
        if chunk.endswith(b"\r"):
            chunk = chunk[:-1]
            self._held_return = True
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(block: bytes) -> bytes:
    """The data lines of one event, joined by line feeds."""
    lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
    return lines[0] if len(lines) == 1 else b"\n".join(lines)
