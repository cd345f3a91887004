"""A process that starts writing calls and is meant to be killed: it forks one child a call, so that none pays for imports.

Standard input: one JSON object a line, {folder, record, act, failpoints, call}; it answers with the child's pid, then `started`
once the intents and blobs are on the disk (as `tool_started` is in the log), then `done`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pickle
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

from files_desk import TOOLS, Desk, Started

from standfast import failpoints
from standfast.files.version import version_of
from standfast.tools.base import StartedCall
from standfast.tools.edits import seen_file

FILES = 300
BIG = 30 * 1024 * 1024


@cache
def big_content(seed: int) -> str:
    """30 MB of text that is not all alike."""
    block = "".join(f"{number:07d} {seed}\n" for number in range(BIG // 64 // 10))
    return (block * 80)[:BIG]


@cache
def big_blob(seed: int) -> tuple[str, bytes]:
    data = big_content(seed).encode()
    return version_of(data), data


def read_record(record: Path) -> tuple[str, StartedCall, dict[str, bytes]]:
    """The tool, the call and all its blobs."""
    tool, call, blobs = pickle.loads(record.read_bytes())
    return tool, call, blobs | dict(map(big_blob, (1, 2) if tool == "write_file" else ()))


def many_patch() -> str:
    """A patch over 300 files: most updated, some added, deleted and moved."""
    sections: list[str] = []
    for number in range(FILES):
        name = f"d{number % 7}/f{number}"
        if number % 50 == 1:
            sections.append(f"*** Delete File: {name}")
        elif number % 50 == 2:
            sections.append(f"*** Add File: new/deep{number}/g{number}\n+added {number}")
        elif number % 50 == 3:
            sections.append(f"*** Update File: {name}\n*** Move to: moved/f{number}\n@@\n-old {number}\n+new {number}")
        else:
            sections.append(f"*** Update File: {name}\n@@\n-old {number}\n+new {number}")
    return "\n".join(("*** Begin Patch", *sections, "*** End Patch")) + "\n"


def arguments(call: dict[str, Any]) -> dict[str, Any]:
    if call["tool"] == "apply_patch":
        return {"patch": many_patch()}
    return {"path": "big.txt", "content": big_content(call["seed"])}


async def act(order: dict[str, Any]) -> None:
    desk = Desk(Path(order["folder"]))
    record = Path(order["record"])
    if order["act"] == "run":
        if order["call"]["tool"] == "write_file":
            version, old = big_blob(1)
            desk.seen["big.txt"] = seen_file("big.txt", old, version)
        started = await desk.start(order["call"]["tool"], **arguments(order["call"]))
        assert isinstance(started, Started), started
        small = {key: data for key, data in desk.blobs.items() if len(data) < BIG}  # large ones can be made again
        record.write_bytes(pickle.dumps((order["call"]["tool"], started.call, small)))
        say("started")
        await desk.finish(started)
    else:
        tool, call, desk.blobs = read_record(record)
        say("started")
        await TOOLS[tool].settle(order["act"], call, desk.context(call.call_id))
    say("done")


def say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        arguments(order["call"])  # made once, before the fork
        if order["call"]["tool"] == "write_file":
            big_blob(1)
        pid = os.fork()
        if pid == 0:
            say(str(os.getpid()))  # by the child, so that it comes before what the child says next
            os.environ["FAILPOINTS"] = order["failpoints"]
            importlib.reload(failpoints)
            random.seed(order["record"])
            asyncio.run(act(order))
            os._exit(0)
        os.waitpid(pid, 0)
        say("ended")


if __name__ == "__main__":
    main()
