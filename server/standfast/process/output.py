"""What a command printed, made fit for the log and the model: bounded, cut between characters, never invalid (a39)."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import NamedTuple

CHUNK = 256 * 1024


class Excerpt(NamedTuple):
    """The beginning and the end of an output. Sizes in characters (code points)."""

    head: str
    tail: str
    dropped: int
    """Characters between head and tail that are left out."""

    @property
    def text(self) -> str:
        """As the model and the log get it."""
        if not self.dropped:
            return self.head + self.tail
        return f"{self.head}\n[… {self.dropped} characters dropped here …]\n{self.tail}"


def excerpt(path: Path, *, head_max: int, tail_max: int) -> Excerpt:
    """Read an output file once, in constant memory; bytes that are no UTF-8 become U+FFFD. A missing file is empty."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    head, tail, dropped = "", "", 0
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Excerpt("", "", 0)
    with file:
        while True:
            data = file.read(CHUNK)
            text = decoder.decode(data, final=not data)
            room = head_max - len(head)
            head += text[:room]
            rest = tail + text[room:]
            tail = rest[max(0, len(rest) - tail_max) :]
            dropped += len(rest) - len(tail)
            if not data:
                return Excerpt(head, tail, dropped)


class Follower:
    """Reads what was added to an output file since the last time, as whole characters."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        """Bytes read so far."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, bytes_max: int = CHUNK) -> str:
        """New text, "" if there is none. A character cut by the end of the file waits for its rest."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(bytes_max)
        except FileNotFoundError:
            return ""
        self.offset += len(data)
        return self._decoder.decode(data)

    def waiting(self) -> int:
        """Bytes that are there and were not read."""
        try:
            return max(0, os.stat(self.path).st_size - self.offset)
        except FileNotFoundError:
            return 0


class LiveOutput:
    """What is shown and logged while a command runs: the first `head_max` characters, then a note at each doubling.

    So the log stays bounded whatever a command prints (ATK-57); the end of the output is added when it has ended.
    """

    def __init__(self, path: Path, *, head_max: int, tail_max: int) -> None:
        self._path = path
        self._follower = Follower(path)
        self._room = head_max
        self._head_max = head_max
        self._tail_max = tail_max
        self._next_note = 0

    def step(self) -> str:
        """What to show now ("" if nothing)."""
        if self._room > 0:
            return self._take(self._follower.read())
        waiting = self._follower.waiting()
        if waiting < self._next_note:
            return ""
        self._next_note = 2 * max(waiting, CHUNK)
        return f"[… {self._follower.offset + waiting} bytes so far …]\n" if waiting else ""

    def last(self) -> str:
        """After the command ended: the rest, or the end of it after a note of what was left out."""
        shown = ""
        while self._room > 0 and (text := self._follower.read()):
            shown += self._take(text)
        rest = excerpt(self._path, head_max=self._head_max, tail_max=self._tail_max)
        if self._room > 0 or not rest.tail:
            return shown
        note = f"\n[… {rest.dropped} characters dropped here …]\n" if rest.dropped else ""
        return shown + note + rest.tail

    def _take(self, text: str) -> str:
        shown = text[: self._room]
        self._room -= len(shown)
        return shown


class Polled(NamedTuple):
    """New output since an offset."""

    text: str
    skipped: int
    """Bytes left out before `text`, because there was more than one answer holds."""
    offset: int
    """Where to go on: bytes, at the beginning of a character."""


def poll(path: Path, offset: int, *, characters_max: int) -> Polled:
    """What an output file has beyond `offset`, at most `characters_max` characters; of more, the newest."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = max(offset, size - characters_max)
            file.seek(begin)
            data = file.read(size - begin)
    except FileNotFoundError:
        return Polled("", 0, offset)
    if begin > offset:  # we are anywhere: go to the beginning of a character
        cut = next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        begin, data = begin + cut, data[cut:]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return Polled(text, begin - offset, begin + len(data) - len(decoder.getstate()[0]))
