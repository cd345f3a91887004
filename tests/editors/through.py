"""A client under test in a transcript: it is told what the person wants, and what it then says is held against what is written.

Between it and a real daemon stands `tap.py`, which tells each message. The client's own ids become those of the transcript;
what it asks for itself (lists, attention) is no part of the transcript and is passed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from wire.raw import Json

WAIT_S = 60.0


class Client(Protocol):
    """How the person makes a client say something."""

    def ask(self, method: str, params: Json) -> None: ...

    def answer(self, answer: Json) -> None: ...

    def close(self) -> None: ...


@dataclass
class Through:
    """A partner of the transcripts' player, made of a client and its daemon. `kill` ends the daemon, by SIGKILL."""

    client: Client
    kill: Callable[[int], None]
    told: asyncio.Queue[Json | None] = field(default_factory=asyncio.Queue[Json | None])
    """None: a new connection."""
    _expected: list[Json] = field(default_factory=list[Json])
    _ids: dict[Any, Any] = field(default_factory=dict[Any, Any])

    async def listen(self, socket: Path) -> asyncio.Server:
        """Take in what taps tell."""

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.told.put_nowait(None)
            with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):  # the test may end first
                while line := await reader.readline():
                    self.told.put_nowait(json.loads(line))

        return await asyncio.start_unix_server(take, socket, limit=2**24)

    # -- the player's side ------------------------------------------------------------------------------------------------

    def send(self, message: Json) -> None:
        self._expected.append(message)
        match message.get("method"):
            case None:
                self.client.answer(message)
            case "initialize" | "initialized" | "exit":  # by itself
                pass
            case "shutdown":
                self.client.close()
            case method:
                self.client.ask(method, message["params"])

    async def next(self) -> Json | None:
        """The daemon's next message of those that the transcript can know."""
        while (told := await self._heard()) is not None:
            if "client" in told:
                self._hold(told["client"])
                continue
            message = told["daemon"]
            if "method" in message:
                return message
            if message["id"] in self._ids:
                return {**message, "id": self._ids[message["id"]]}
        return await self.next()

    async def crash(self) -> None:
        self.kill(signal.SIGKILL)
        self._ids.clear()
        while await self._heard() is not None:
            pass

    async def rest(self) -> None:
        """Until the client has said everything that is written."""
        while self._expected:
            told = await self._heard()
            if told is not None and "client" in told:
                self._hold(told["client"])

    # -- what the client said ---------------------------------------------------------------------------------------------

    async def _heard(self) -> Json | None:
        try:
            return await asyncio.wait_for(self.told.get(), WAIT_S)
        except TimeoutError:
            raise AssertionError(f"the client did not say {json.dumps(self._expected)[:2000]}") from None

    def _hold(self, said: Json) -> None:
        for at, wanted in enumerate(self._expected):
            if holds(wanted, said):
                del self._expected[at]
                if "method" in said and "id" in said:
                    self._ids[said["id"]] = wanted["id"]
                return


def holds(wanted: Json, said: Json) -> bool:
    """Whether a client's message says what the transcript's does; it may say more, and which error is its own affair."""
    if wanted.get("method") != said.get("method"):
        return False
    if wanted.get("method") == "initialize":
        offered = [each["params"]["capabilities"]["experimental"]["standfast"] for each in (wanted, said)]
        return offered[0].items() <= offered[1].items()
    if "method" not in wanted:
        same = "error" in said if "error" in wanted else contains(wanted, said)
        return same and wanted["id"] == said.get("id")
    return contains(wanted.get("params") or {}, said.get("params") or {})


def contains(wanted: Any, said: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(said, dict):
        return all(key in said and contains(value, said[key]) for key, value in wanted.items())
    return wanted == said
