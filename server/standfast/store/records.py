"""Reads JSONL that a crash or a bad disk may have hurt, line by line, and says what was left out and where (a08–a10).

Known hurts: a last line that was cut, a run of NUL bytes from an interrupted append, two records fused on one line, half a
record with a whole one behind it. The file is never changed. Memory is bounded by the longest line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import orjson

from standfast.events.encode import clean

LINE_MAX = 256 * 1024 * 1024
"""A longer line is not read as a record."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object, where it began and its bytes as they stand in the file."""

    offset: int
    value: dict[str, Any]
    raw: bytes
    exact: bool = True
    """Whether `raw` is strict JSON; else only `value`, with what is not Unicode replaced, says what it holds."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Bytes that are no record. `what` is a word: `nul`, `cut` (the last line) or `broken`."""

    offset: int
    length: int
    what: str

    @property
    def sentence(self) -> str:
        kind = {"nul": "zero bytes", "cut": "a last line that was cut off"}.get(
            self.what, "bytes that are no whole record"
        )
        return f"{self.length} bytes at offset {self.offset} were left out: {kind}."


def read_records(stream: BinaryIO) -> Iterator[Record | Skipped]:
    """Every whole record in the file's order, and what lies between them."""
    offset = 0
    while line := stream.readline(LINE_MAX):
        yield from _line(line, offset)
        offset += len(line)


def _line(line: bytes, offset: int) -> Iterator[Record | Skipped]:
    text = line.rstrip(b"\r\n")
    whole = _object(text)
    if whole is not None:
        yield Record(offset, whole[0], text, whole[1])
        return
    position = 0
    for part in text.split(b"\0"):
        if part.strip():
            yield from _pieces(part, offset + position, last=len(text) == len(line))
        position += len(part) + 1
    nul = text.count(b"\0")
    if nul:
        yield Skipped(offset + text.index(b"\0"), nul, "nul")


def _pieces(text: bytes, offset: int, *, last: bool) -> Iterator[Record | Skipped]:
    """Records that share a line, and the halves between them. `last`: the file ends here without a newline."""
    start = 0
    while start < len(text):
        found = _next(text, start)
        if found is None:
            if text[start:].strip():
                yield Skipped(offset + start, len(text) - start, "cut" if last else "broken")
            return
        begin, end, value = found
        if text[start:begin].strip():
            yield Skipped(offset + start, begin - start, "broken")
        yield Record(offset + begin, clean(value), text[begin:end], exact=False)
        start = end


def _next(text: bytes, start: int) -> tuple[int, int, dict[str, Any]] | None:
    """(begin, end, object) of the next whole record from `start` on: `{"` begins one, and it must have a type."""
    decoder = json.JSONDecoder()
    begin = text.find(b'{"', start)
    tries = 0
    while begin >= 0 and tries < 1_000:
        piece = text[begin:].decode("utf-8", "surrogateescape")
        try:
            value, length = decoder.raw_decode(piece)
        except (ValueError, RecursionError):
            value, length = None, 0
        if isinstance(value, dict) and "type" in value:
            end = begin + len(piece[:length].encode("utf-8", "surrogateescape"))
            return begin, end, cast("dict[str, Any]", value)
        begin = text.find(b'{"', begin + 1)
        tries += 1
    return None


def _object(text: bytes) -> tuple[dict[str, Any], bool] | None:
    """(object, whether it is strict JSON)"""
    value: Any
    try:
        value, exact = orjson.loads(text), True
    except orjson.JSONDecodeError:
        try:
            value, exact = clean(json.loads(text)), False  # a lone surrogate as an escape, an endless number (a38)
        except (ValueError, RecursionError):
            return None
    return (cast("dict[str, Any]", value), exact) if isinstance(value, dict) else None
