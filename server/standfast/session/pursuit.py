"""How a goal goes on by itself (R6.3): one turn after the other, with a pause, while the person left it active. Never at start."""

from __future__ import annotations

import asyncio
import logging

from standfast.errors import StandfastError
from standfast.events.types import TextContent, UserMessage
from standfast.failpoints import hit
from standfast.projections.rows import SessionRow
from standfast.run import goal
from standfast.session.binding import require
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.starting import Starting

log = logging.getLogger("standfast.session")


class Pursuit:
    """Starts the turns that a goal asks for, through `Starting` like any other run."""

    def __init__(self, parts: Parts, starting: Starting) -> None:
        self._parts = parts
        self._starting = starting

    async def consider(self, live: Live) -> None:
        """Let an active goal go on after the pause; called after a good end and when the person activates it."""
        row = await self._parts.store.session(live.session_id)
        if row is not None and goal.goes_on(row.goal) and live.run_id is None and not live.pursuing:
            live.pursuing = True
            self._parts.spawn(self._next(live), f"goal {live.session_id}")

    async def _next(self, live: Live) -> None:
        try:
            await self._parts.pause(self._parts.goal_pause_s)
            async with live.turn:
                live.pursuing = False
                row = await self._parts.store.session(live.session_id)
                if row is not None and live.run_id is None:
                    await self._turn(live, row)
        except StandfastError as error:
            log.warning("goal not pursued", extra={"session_id": live.session_id, "reason": error.reason})
        except asyncio.CancelledError:
            pass  # the daemon ends; the next one starts nothing by itself
        finally:
            live.pursuing = False

    async def _turn(self, live: Live, row: SessionRow) -> None:
        if row.goal is None or not goal.goes_on(row.goal):
            return
        await require(row, self._starting.folders.open)
        run_id, message_id = self._parts.ids.new("run"), self._parts.ids.new("msg")
        content = [TextContent(text=goal.prompt(row.goal))]
        message = UserMessage(message_id=message_id, client_message_id=message_id, content=content)
        hit("in_goal")
        await self._starting.begin(live, row, run_id, self._starting.started("goal"), [(run_id, message)])
        hit("in_goal")
