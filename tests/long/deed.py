"""A process that does one thing to a session and may be killed at a failpoint: `deed.py PLACE DEED SESSION`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from long_session import CheckingModel, Desk, open_desk

from standfast.events.types import TextContent


async def do(desk: Desk, place: Path, deed: str, session_id: str) -> None:
    """Carry the deed out to its end."""
    match deed:
        case "compact":
            await desk.sessions.compact(session_id)
        case "goal":
            await desk.sessions.goal_set(session_id, "reach it")
            await desk.end_of()
        case "fork":
            await desk.sessions.fork(session_id)
        case "rebind":
            await desk.sessions.rebind(session_id, (place / "elsewhere").as_uri())
        case "delete":
            await desk.sessions.delete(session_id)
        case "import":
            await desk.sessions.import_((place / "rollout.jsonl").as_uri())
        case "queue":
            await queued(desk, session_id)
        case _:
            raise ValueError(deed)


async def queued(desk: Desk, session_id: str) -> None:
    """A run that hangs in the model, three messages behind it, which are then edited, moved and removed, and one put into the run."""
    desk.model.hold = asyncio.Event()
    run = await desk.say(session_id, "first")
    await desk.model.asked.wait()
    for text in ("second", "third", "fourth", "fifth"):
        assert (await desk.say(session_id, text)).status == "queued"
    waiting, _ = await desk.sessions.queue(session_id)
    second, third, fourth, fifth = (message.message_id for message in waiting)
    await desk.sessions.queue_edit(session_id, third, "third, edited")
    await desk.sessions.queue_move(session_id, fifth, 0)
    await desk.sessions.queue_move(session_id, second, 2)
    await desk.sessions.queue_remove(session_id, fourth)
    await desk.sessions.run_steer(run.run_id, [TextContent(text="rather in blue")], "steer-1")
    os.kill(os.getpid(), signal.SIGKILL)


async def main(place: Path, deed: str, session_id: str) -> None:
    model = CheckingModel(lambda _: ("Answer.", []), 40_000)
    async with open_desk(place, model) as desk:
        await do(desk, place, deed, session_id)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
