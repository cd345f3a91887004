"""Many clients that follow sessions, lose their connection and come back with the last (seq, hash) they hold (R-RECOVER-22)."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from pathlib import Path

from wire.raw import Json, Raw, connect_to

_numbers = itertools.count(1)
PAGE = 5
"""Small, so that coming back takes several pages."""
OVER = "over"
"""The title that a session gets last: whoever hears it has heard everything."""


def number() -> str:
    return f"n{next(_numbers)}"


@dataclass
class Follower:
    """One client over many connections. `held`: every event it was given, in the order in which it came."""

    socket: Path
    session_id: str
    random: random.Random
    held: list[Json] = field(default_factory=list[Json])
    connections: int = 0

    def take(self, events: list[Json]) -> None:
        """Exactly the next ones, or the client says so."""
        for event in events:
            last = self.held[-1]["seq"] if self.held else 0
            assert event["seq"] == last + 1, f"{self.session_id}: {event['seq']} came after {last}"
            self.held.append(event)

    @property
    def over(self) -> bool:
        return bool(self.held) and self.held[-1].get("title") == OVER

    async def follow(self) -> None:
        """Until the session is over, over as many connections as chance wants."""
        while not self.over:
            self.connections += 1
            async with connect_to(self.socket) as raw:
                await raw.initialize()
                await self._attach(raw)
                await self._listen(raw, self.random.choice((1, 3, 10, 10_000)))

    async def _attach(self, raw: Raw) -> None:
        since: Json = (
            {"afterSeq": self.held[-1]["seq"], "afterHash": self.held[-1]["hash"]} if self.held else {"afterSeq": 0}
        )
        place: Json = {"sessionId": self.session_id, "limit": PAGE}
        answered = await raw.ask(number(), "standfast/session/attach", {**place, **since})
        assert "damage" not in answered, answered["damage"]
        self.take(answered["events"])
        while self.held[-1]["seq"] < answered["headSeq"]:
            after = {"afterSeq": self.held[-1]["seq"]}
            page = await raw.ask(number(), "standfast/session/events", {**place, **after})
            self.take([event for event in page["events"] if event["seq"] <= answered["headSeq"]])
        for message in raw.heard:
            self._hear(message)

    async def _listen(self, raw: Raw, most: int) -> None:
        """Some live events; then the connection is cut, wherever it stands."""
        enough = len(self.held) + most
        while not self.over and len(self.held) < enough:
            message = await raw.next()
            assert message is not None, "the daemon hung up"
            self._hear(message)

    def _hear(self, message: Json) -> None:
        if message.get("method") == "standfast/event":
            self.take([message["params"]["event"]])


async def stored(raw: Raw, session_id: str) -> list[Json]:
    """The whole history, by page."""
    events: list[Json] = []
    more = True
    while more:
        after = {"sessionId": session_id, "afterSeq": events[-1]["seq"] if events else 0, "limit": 1000}
        page = await raw.ask(number(), "standfast/session/events", after)
        events += page["events"]
        more = page["hasMore"]
    return events


async def run_often(raw: Raw, session_id: str, runs: int) -> None:
    """Several runs, one after the other; then the session is over."""
    for _ in range(runs):
        said = {"sessionId": session_id, "text": "/list\n" * 4, "clientMessageId": number()}
        started = (await raw.ask(number(), "standfast/run/start", said))["runId"]
        await raw.told(
            "standfast/event",
            lambda p, run_id=started: p["event"]["type"] == "run_finished" and p["event"]["runId"] == run_id,
        )
    await raw.ask(number(), "standfast/session/update", {"sessionId": session_id, "title": OVER})


async def crowd(socket: Path, folder: Path, *, clients: int, sessions: int, runs: int, seed: int) -> list[Follower]:
    """Clients on sessions while these run; returns what each client holds, checked against the store. Raises on any gap."""
    chance = random.Random(seed)
    async with connect_to(socket) as driver:
        await driver.initialize()
        made = [
            (await driver.ask(number(), "standfast/session/create", {"workspaceUri": folder.as_uri(), "mode": "auto"}))
            for _ in range(sessions)
        ]
        session_ids: list[str] = [one["session"]["sessionId"] for one in made]
        followers = [
            Follower(socket, session_ids[at % sessions], random.Random(chance.random())) for at in range(clients)
        ]
        async with asyncio.TaskGroup() as tasks:
            for follower in followers:
                tasks.create_task(follower.follow())
            for session_id in session_ids:
                tasks.create_task(_drive(socket, session_id, runs))
        for session_id in session_ids:
            history = await stored(driver, session_id)
            for follower in followers:
                assert follower.session_id != session_id or follower.held == history
    return followers


async def _drive(socket: Path, session_id: str, runs: int) -> None:
    async with connect_to(socket) as raw:
        await raw.initialize()
        await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        await run_often(raw, session_id, runs)
