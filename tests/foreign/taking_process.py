"""A process that takes one big file in and says how its memory grew: `taking_process.py PLACE FILE`."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from long_session import CheckingModel, open_desk


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main(place: Path, file: Path) -> None:
    told: list[int] = []

    async def progress(events: int) -> None:
        told.append(events)

    async with open_desk(place, CheckingModel(lambda _: ("Answer.", []), 200_000)) as desk:
        before = peak_mb()
        view = await desk.sessions.import_(file.as_uri(), progress=progress)
        grown = peak_mb() - before
        sys.stdout.write(json.dumps({"grownMb": grown, "progress": len(told), "events": view.row.head_seq}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
