"""A process that resumes a huge session and says what that cost: `huge_process.py PLACE EVENTS BYTES_EACH BYTES_OF_ONE`."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from long_session import CheckingModel, open_desk

from standfast.events.types import (
    AssistantMessage,
    RunFinished,
    RunStarted,
    SessionCreated,
    SummaryCreated,
    TextContent,
    ToolCall,
    ToolResult,
    ToolStarted,
    UserMessage,
)
from standfast.store.past import Intake, Past


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def history(folder: str, events: int, each: int, one: int) -> Iterator[Past]:
    """Runs of six events, one of them a tool result of `each` bytes; the third run's has `one`; a summary near the end."""
    yield Past(1, None, SessionCreated(workspace_uri=folder))
    runs = events // 6
    for n in range(runs):
        run_id, call_id = f"run_{n}", f"call_{n}"
        use = {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": "x.txt"}}
        content = [TextContent(text=f"message {n}")]
        for fact in (
            RunStarted(worker_id="w", boot_id="b", trigger="message"),
            UserMessage(message_id=f"msg_{n}", client_message_id=f"c{n}", content=content),
            AssistantMessage(blocks=[use], stop_reason="tool_use"),
            ToolCall(call_id=call_id, provider_call_id=call_id, tool="read_file", args={"path": "x.txt"}),
            ToolStarted(call_id=call_id),
            ToolResult(call_id=call_id, status="ok", content="x" * (one if n == 3 else each)),
            RunFinished(status="succeeded"),
        ):
            yield Past(n, run_id, fact)
        if n == runs - 3:
            yield Past(n, None, SummaryCreated(through_seq=1 + 7 * (n + 1), text="## Goal\nwhat came before"))


async def prepare(place: Path, events: int, each: int, one: int) -> None:
    async with open_desk(place, CheckingModel(lambda _: ("Answer.", []), 400_000)) as desk:
        await desk.store.take_in(Intake("ses_huge", history(desk.workspace.as_uri(), events, each, one)))


async def resume(place: Path) -> None:
    model = CheckingModel(lambda _: ("Answer.", []), 400_000)
    async with open_desk(place, model) as desk:
        before, begun = peak_mb(), time.perf_counter()
        attached = await desk.sessions.attach("ses_huge")
        seconds = time.perf_counter() - begun
        await desk.turn("ses_huge", "go on")
        told = {
            "page": len(attached.events),
            "attachS": seconds,
            "grownMb": peak_mb() - before,
            "head": attached.head_seq,
        }
        sys.stdout.write(json.dumps({**told, "sent": model.bodies[-1].decode()[:500_000]}))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        asyncio.run(prepare(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:])))
    else:
        asyncio.run(resume(Path(sys.argv[1])))
