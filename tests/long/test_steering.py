"""A message put into a run that goes on: read after the current call, once, and never into a run that is over (issue F.8)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from long_session import CheckingModel, Reply, open_desk

from standfast.errors import NotAvailable
from standfast.events.types import TextContent

WINDOW = 40_000


def reads_then_ends(messages: list[dict[str, Any]]) -> Reply:
    if messages[-1]["content"][0]["type"] == "tool_result":
        return "Done.", []
    return "Looking.", [("read_file", {"path": "x.txt"})]


async def test_it_is_read_after_the_current_call_in_the_same_run_and_only_once(tmp_path: Path) -> None:
    model = CheckingModel(reads_then_ends, WINDOW, hold=asyncio.Event())
    async with open_desk(tmp_path, model) as desk:
        (desk.workspace / "x.txt").write_text("x\n")
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        run = await desk.say(session_id, "paint it")
        await asyncio.wait_for(model.asked.wait(), 10)
        for _ in range(2):
            await desk.sessions.run_steer(run.run_id, [TextContent(text="in blue")], "client-1")
        assert model.hold is not None
        model.hold.set()
        assert await desk.end_of(run.run_id) == "succeeded"
        assert len(model.bodies) == 2
        last = json.loads(model.bodies[1])[2][-1]["content"]
        assert [block["type"] for block in last] == ["tool_result", "text"]
        assert last[1]["text"] == "in blue"
        assert await desk.turn(session_id, "more") == "succeeded"
        assert model.bodies[-1].decode().count('"in blue"') == 1
        with pytest.raises(NotAvailable):
            await desk.sessions.run_steer(run.run_id, [TextContent(text="too late")], "client-2")
        assert "too late" not in [row.text for row in await desk.sessions.messages()]


async def test_one_that_comes_during_the_last_reply_is_answered_in_the_same_run(tmp_path: Path) -> None:
    model = CheckingModel(lambda _: ("Done.", []), WINDOW, hold=asyncio.Event())
    async with open_desk(tmp_path, model) as desk:
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        run = await desk.say(session_id, "paint it")
        await asyncio.wait_for(model.asked.wait(), 10)
        await desk.sessions.run_steer(run.run_id, [TextContent(text="in blue")], "client-1")
        assert model.hold is not None
        model.hold.set()
        assert await desk.end_of(run.run_id) == "succeeded"
        assert [json.loads(body)[2][-1]["content"][-1]["text"] for body in model.bodies] == ["paint it", "in blue"]
