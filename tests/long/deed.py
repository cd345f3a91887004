"""A process that does one thing to a session and may be killed at a failpoint: `deed.py PLACE DEED SESSION`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from long_session import CheckingModel, Desk, open_desk


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
        case _:
            raise ValueError(deed)


async def main(place: Path, deed: str, session_id: str) -> None:
    model = CheckingModel(lambda _: ("Answer.", []), 40_000)
    async with open_desk(place, model) as desk:
        await do(desk, place, deed, session_id)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
