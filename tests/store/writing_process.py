"""A process of its own that opens a store, appends, and says on stdout what was acknowledged: `ack SEQ`. Killed by tests.

python writing_process.py STORE COUNT
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from histories import call, created, entry

from standfast.clock import SystemClock
from standfast.errors import StoreError
from standfast.events.types import RunFinished
from standfast.store.sqlite import SqliteStore


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def write(path: Path, count: int) -> None:
    store = await SqliteStore.open(path, SystemClock())
    try:
        say("open")
        if await store.session("s") is None:
            for event in await store.append(entry("s", created())):
                say(f"ack {event.seq}")
        try:
            for n in range(count):
                text = "x" * 20_000
                for event in await store.append(
                    entry("s", call(f"c{n}").model_copy(update={"args": {"text": text}}), run_id="r")
                ):
                    say(f"ack {event.seq}")
        except StoreError as error:
            say(f"refused {error.reason}")
            if error.reason == "StorageFull":
                (event,) = await store.append(entry("s", RunFinished(status="failed"), run_id="r"))
                say(f"ack {event.seq}")
                say(f"read {len(await store.events('s', limit=1000))}")
    finally:
        await store.close()  # its threads would keep the process
    say("closed")


asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
