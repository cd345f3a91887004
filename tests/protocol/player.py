"""Plays a conformance transcript: says the client's part, holds the daemon's against what is written (transcripts/README.md)."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wire.raw import Json

TRANSCRIPTS = Path(__file__).parents[2] / "protocol-spec/transcripts"
FILES = sorted(TRANSCRIPTS.glob("*.jsonl"))


def steps_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


ENDED = "the connection ended"


class Mismatch(AssertionError):
    """What was said differs from what is written, with its path."""


class Partner(Protocol):
    """Whom the client speaks with: a daemon, or what one said before."""

    def send(self, message: Json) -> None: ...

    async def next(self) -> Json | None: ...

    async def crash(self) -> None: ...


@dataclass
class Player:
    """Plays one transcript. Messages are looked at in order, each once a method."""

    partner: Partner
    known: dict[str, Any]
    matched: dict[int, Json] = field(default_factory=dict[int, Json])
    """Step (from 1) → the message that was held against it."""
    _unread: list[Json] = field(default_factory=list[Json])

    async def play(self, steps: Sequence[Json]) -> None:
        """Raises Mismatch at the first step that is not as written."""
        for number, step in enumerate(steps, 1):
            if "client" in step:
                self.partner.send(self._filled(step["client"]))
            elif "crash" in step:
                await self.partner.crash()
                self._unread.clear()
            elif "until" in step:
                await self._until(step["until"], number)
            else:
                said = self.matched[number] = await self._said(step["daemon"], number)
                self._compare(step["daemon"], said, f"step {number}: $")

    async def _until(self, wanted: Json, number: int) -> None:
        """Pass over messages of the same method that are not as written."""
        while True:
            before = dict(self.known)
            try:
                self._compare(wanted, await self._said(wanted, number), "$")
            except Mismatch as mismatch:
                if ENDED in str(mismatch):
                    raise
                self.known = before
            else:
                return

    async def _said(self, wanted: Json, number: int) -> Json:
        """The next message of that method, or the answer with that id."""
        while True:
            for at, message in enumerate(self._unread):
                if self._is_it(wanted, message):
                    return self._unread.pop(at)
            message = await self.partner.next()
            if message is None:
                raise Mismatch(f"step {number}: {ENDED} before {json.dumps(wanted)[:200]}")
            self._unread.append(message)

    def _is_it(self, wanted: Json, message: Json) -> bool:
        if "method" in wanted:
            return message.get("method") == wanted["method"]
        return "method" not in message and message.get("id") == self._filled(wanted["id"])

    def _compare(self, wanted: Any, said: Any, path: str) -> None:
        if isinstance(wanted, dict):
            for key, value in wanted.items():
                if not isinstance(said, dict) or key not in said:
                    raise Mismatch(f"{path}.{key}: is not there")
                self._compare(value, said[key], f"{path}.{key}")
        elif isinstance(wanted, list):
            if not isinstance(said, list) or len(said) != len(wanted):
                raise Mismatch(f"{path}: wanted {len(wanted)} entries, got {json.dumps(said)[:200]}")
            for index, value in enumerate(wanted):
                self._compare(value, said[index], f"{path}[{index}]")
        elif wanted != "$_":
            name = wanted[1:] if isinstance(wanted, str) and re.fullmatch(r"\$\w+", wanted) else None
            if name is not None and name not in self.known:
                self.known[name] = said
            elif self._filled(wanted) != said:
                raise Mismatch(f"{path}: wanted {json.dumps(self._filled(wanted))}, got {json.dumps(said)}")

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._filled(part) for part in value]
        if not isinstance(value, str):
            return value
        if value[:1] == "$" and value[1:] in self.known:
            return self.known[value[1:]]
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self.known[found[1]]), value)


@dataclass
class Recorded:
    """A partner that says again what a daemon said, whatever it hears. One list a connection: a crash goes on to the next."""

    connections: list[list[Json]]
    _connection: int = 0
    _at: int = 0

    def send(self, message: Json) -> None:
        """It has its say already."""

    async def next(self) -> Json | None:
        said = self.connections[self._connection]
        self._at += 1
        return said[self._at - 1] if self._at <= len(said) else None

    async def crash(self) -> None:
        self._connection, self._at = self._connection + 1, 0


_OF_THE_ENVELOPE = ("jsonrpc", "id", "method")
"""By these a message is found at all."""


def fields_of(wanted: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every field that a daemon's step names."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if path or key not in _OF_THE_ENVELOPE:
                yield (*path, key)
                yield from fields_of(value, (*path, key))
    elif isinstance(wanted, list):
        for index, value in enumerate(wanted):
            yield from fields_of(value, (*path, index))


def renamed(connections: list[list[Json]], message: Json, path: tuple[str | int, ...]) -> list[list[Json]]:
    """The same conversation, but one field of one message has another name."""
    bent = copy.deepcopy(message)
    target: Any = bent
    for key in path[:-1]:
        target = target[key]
    target[f"{path[-1]}Renamed"] = target.pop(path[-1])
    return [[bent if said is message else said for said in heard] for heard in connections]


def swapped(connections: list[list[Json]], one: Json, other: Json) -> list[list[Json]]:
    """The same conversation, but two messages changed their places."""
    places = {id(one): other, id(other): one}
    return [[places.get(id(message), message) for message in said] for said in connections]


def shown(path: tuple[str | int, ...]) -> str:
    """A path as a Mismatch names it."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
