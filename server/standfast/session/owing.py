"""A run's end that the store could not take (a full or a failing disk): kept here, and stored as soon as it can be (F6, F7).

Until then the run has no end in the history, and nothing else starts in its session. If the daemon dies first, the next one
marks the run interrupted, as after any crash: nothing is lost but the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from standfast.errors import StandfastError
from standfast.events.types import Fact
from standfast.session.live import Live
from standfast.session.parts import Parts

log = logging.getLogger("standfast.session")

AGAIN_S = 1.0
"""Pause between two tries."""


def owe(parts: Parts, live: Live, facts: Sequence[tuple[str | None, Fact]]) -> None:
    """Keep what could not be stored, and try again until it is. Under `live.turn`."""
    live.owed.extend(facts)
    parts.spawn(_pay_later(parts, live), f"owed {live.session_id}")


async def pay(parts: Parts, live: Live) -> None:
    """Store what is owed, if anything is. Under `live.turn`. Raises StoreError: then it is still owed."""
    if live.owed:
        await parts.journal.emit(live.session_id, list(live.owed))
        live.owed.clear()


async def _pay_later(parts: Parts, live: Live) -> None:
    while live.owed:
        await asyncio.sleep(AGAIN_S)
        async with live.turn:
            try:
                await pay(parts, live)
            except StandfastError as error:
                log.warning("run end still not stored", extra={"session_id": live.session_id, "reason": error.reason})
