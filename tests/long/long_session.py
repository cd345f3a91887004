"""A session in this process, with a real store and real files, whose model checks each request by the strict fake's own rules."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from fake_api import rules
from standfast.clock import RandomIds, SystemClock
from standfast.events.journal import Journal
from standfast.events.types import TextContent, Usage
from standfast.files.buffers import NoBuffers
from standfast.model.base import Completed, ModelError, ModelRequest, RequestedCall, StreamItem
from standfast.model.request import api_body
from standfast.run import summary
from standfast.session.parts import Parts
from standfast.session.sessions import Sessions
from standfast.session.views import StartedRun
from standfast.store.sqlite import SqliteStore
from standfast.tools.base import Tool
from standfast.tools.read_file import ReadFile
from standfast.tools.read_result import ReadResult
from standfast.tools.update_goal import UpdateGoal
from standfast.tools.update_plan import UpdatePlan
from standfast.tools.write_file import WriteFile

Reply = tuple[str, list[tuple[str, dict[str, Any]]]]
"""Text, and calls as (tool, args)."""
CHECKPOINT = (
    "## Goal\nGo on.\n## Findings\nMany.\n## Done\nMuch.\n## To do\nMore.\n## Decisions of the person\n(nothing)"
)


@dataclass
class CheckingModel:
    """A `Model`. `script` says the reply to the messages; `requests` keeps each body as bytes, in the order they go over the wire."""

    script: Callable[[list[dict[str, Any]]], Reply]
    window: int
    provider: Literal["anthropic", "scripted"] = "scripted"
    bodies: list[bytes] = field(default_factory=list[bytes])
    checkpoints: list[int] = field(default_factory=list[int])
    """Numbers of requests (index in `bodies`) that followed a checkpoint."""
    gate: asyncio.Event | None = None
    """Checkpoints wait for it."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    checkpointing: asyncio.Event = field(default_factory=asyncio.Event)
    usage_tokens: int | None = None
    fail_checkpoints: int = 0
    """So many checkpoints fail first."""
    hold: asyncio.Event | None = None
    """Replies wait for it."""
    _calls: int = 0

    async def warm(self) -> None: ...

    async def close(self) -> None: ...

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        body = api_body(request)
        refused = rules.violation(rules.parse(json.dumps(body).encode()))
        assert refused is None, refused
        if request.system == summary.SYSTEM:
            self.checkpoints.append(len(self.bodies))
            self.checkpointing.set()
            if self.gate is not None:
                await self.gate.wait()
            if self.fail_checkpoints:
                self.fail_checkpoints -= 1
                raise ModelError("Overloaded", "Not now.", retry=True)
            yield Completed(
                [{"type": "text", "text": CHECKPOINT}], "end_turn", Usage(input_tokens=10, output_tokens=10)
            )
            return
        self.bodies.append(wire_order(request))
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        tokens = len(self.bodies[-1]) // 4
        assert tokens + request.max_tokens <= self.window, (tokens, request.max_tokens)
        text, wanted = self.script(list(request.messages))
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        calls: list[RequestedCall] = []
        for tool, args in wanted:
            self._calls += 1
            calls.append(RequestedCall(f"toolu_{self._calls}", tool, args))
            blocks.append({"type": "tool_use", "id": calls[-1].provider_call_id, "name": tool, "input": args})
        used = Usage(input_tokens=self.usage_tokens or tokens, output_tokens=len(text) // 4)
        yield Completed(blocks, "tool_use" if calls else "end_turn", used, calls)


def wire_order(request: ModelRequest) -> bytes:
    """A request as the prompt cache sees it: tools, system, messages. Without the cache marks, which are not cached."""
    return json.dumps([list(request.tools), request.system, list(request.messages)], ensure_ascii=False).encode()


def shared_with_the_one_before(bodies: list[bytes], after_checkpoint: set[int]) -> float:
    """The median share of a request that is a common prefix with the one before it, outside compactions."""
    shares: list[float] = []
    for at in range(1, len(bodies)):
        if at not in after_checkpoint:
            before, now = bodies[at - 1], bodies[at]
            common = next(
                (i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now))
            )
            shares.append(common / len(now))
    return median(shares)


@dataclass
class Desk:
    """The session layer without a front."""

    sessions: Sessions
    store: SqliteStore
    journal: Journal
    model: CheckingModel
    workspace: Path
    ended: asyncio.Queue[tuple[str | None, str]] = field(default_factory=asyncio.Queue[tuple[str | None, str]])

    async def say(self, session_id: str, text: str) -> StartedRun:
        said = [TextContent(text=text)]
        return await self.sessions.run_start(session_id, said, RandomIds().new("client"))

    async def turn(self, session_id: str, text: str) -> str:
        """Say something and wait for the end; returns the run's status."""
        started = await self.say(session_id, text)
        return await self.end_of(started.run_id)

    async def end_of(self, run_id: str | None = None) -> str:
        """Wait for the end of a run (of the next one that ends, if None)."""
        async with asyncio.timeout(30):
            while True:
                ended, status = await self.ended.get()
                if run_id in (None, ended):
                    return status


@contextlib.asynccontextmanager
async def open_desk(
    place: Path,
    model: CheckingModel,
    *,
    max_tokens: int = 500,
    goal_pause_s: float = 0.0,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[Desk]:
    """A desk whose store is `place/store.db` and whose workspace is `place/project`."""
    (place / "project").mkdir(exist_ok=True)
    (place / "spool").mkdir(exist_ok=True)
    store = await SqliteStore.open(place / "state" / "store.db", SystemClock())
    journal = Journal(store)
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    offered: tuple[Tool, ...] = (ReadFile(), WriteFile(), UpdatePlan(), UpdateGoal(), ReadResult())
    sessions = Sessions(
        Parts(
            store=store, journal=journal, model=model, model_name="claude-test", max_tokens=max_tokens, window=model.window,
            tools={tool.name: tool for tool in offered}, offered=offered, buffers=NoBuffers(), clock=SystemClock(),
            ids=RandomIds(), spawn=spawn, spool=place / "spool", worker_id="w", boot_id="b", user_id="u",
            goal_pause_s=goal_pause_s, pause=pause,
        )
    )  # fmt: skip
    desk = Desk(sessions, store, journal, model, place / "project")
    journal.subscribe(
        lambda events: (
            [
                desk.ended.put_nowait((event.run_id, event.fact.status))  # type: ignore[attr-defined]
                for event in events
                if event.fact.type == "run_finished"
            ]
            and None
        )
    )
    await sessions.start()
    try:
        yield desk
    finally:
        while tasks:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        await store.close()
