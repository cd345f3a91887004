"""`standfast events`: what is recorded in all sessions, as it happens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rich.text import Text

from standfast.cli import output
from standfast.cli.client import Client, ConnectionLost, Json
from standfast.cli.door import Door
from standfast.cli.talk import talk
from standfast.cli.wording import describe

LAST = 20
"""How many past events of each session are shown first."""


async def events(door: Door, session_id: str | None, *, follow: bool, as_json: bool) -> int:
    """The newest events of each session, then (with `follow`) everything new until interrupted or the daemon ends."""
    async with talk(door) as client:
        tail = Tail(client, as_json=as_json)
        client.listen(tail.hear)
        if session_id is not None:
            await tail.attach(session_id, limit=LAST)
        else:
            listed = await client.request("standfast/session/list", {})
            for session in reversed(listed["sessions"]):
                await tail.attach(session["sessionId"], limit=LAST)
        if follow:
            await tail.follow(only=session_id)
    return output.DONE


@dataclass(slots=True)
class Tail:
    """Attached to sessions; prints each event once."""

    client: Client
    as_json: bool
    known: set[str] = field(default_factory=set[str])
    new: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    async def attach(self, session_id: str, **page: int) -> None:
        self.known.add(session_id)
        attached = await self.client.request("standfast/session/attach", {"sessionId": session_id, **page})
        for event in attached["events"]:
            self.show(event)

    async def follow(self, only: str | None) -> None:
        """Attach to new sessions as they appear. Ends with ConnectionLost when the daemon does."""
        while True:
            waiting = asyncio.ensure_future(self.new.get())
            gone = asyncio.ensure_future(self.client.lost.wait())
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if not waiting.done():
                waiting.cancel()
                raise ConnectionLost
            session_id = waiting.result()
            if only is None and session_id not in self.known:
                await self.attach(session_id, afterSeq=0)  # it is new: none of its events is an old one

    def hear(self, method: str, params: Json) -> None:
        if method == "standfast/event":
            self.show(params["event"])
        elif method == "standfast/session/changed":
            self.new.put_nowait(params["session"]["sessionId"])

    def show(self, event: Json) -> None:
        if self.as_json:
            output.print_json(event)
            return
        line = describe(event)
        output.out.print(Text.assemble((f"{event['sessionId'][-6:]} {event['seq']:>5} ", "dim"), line))
