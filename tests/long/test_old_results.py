"""Old tool results become one line with a way to read them again, seldom and all at once (issue F, "The context builder")."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from long_session import CheckingModel, Reply, open_desk, shared_with_the_one_before

from standfast.events.types import ResultsShortened

WINDOW = 20_000
CALLS = 24


def looks_long(messages: list[dict[str, Any]]) -> Reply:
    """One run of many calls; in a second one it asks for a result that was shortened, then tells it."""
    last = messages[-1]["content"]
    if last[-1]["type"] == "text" and last[-1]["text"] == "what was the first?":
        found = re.search(r'read_result \{"call_id": "(call_\w+)"\}', str(messages))
        assert found is not None
        return "Again.", [("read_result", {"call_id": found[1]})]
    if last[-1]["type"] == "text" and last[-1]["text"] == "another's":
        return "Theirs.", [("read_result", {"call_id": "call_of_another_session"})]
    results = sum(block["type"] == "tool_result" for message in messages for block in message["content"])
    if results < CALLS:
        return "Next.", [("read_file", {"path": f"{results}.txt"})]
    return "Done.", []


@pytest.mark.requirement("R1.4")
async def test_old_results_are_one_line_each_that_leads_back_to_them(tmp_path: Path) -> None:
    model = CheckingModel(looks_long, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        for n in range(CALLS):
            (desk.workspace / f"{n}.txt").write_text(f"file {n} begins\n" + f"line of file {n}\n" * 150)
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        assert await desk.turn(session_id, "look at all of them") == "succeeded"
        shortenings = [
            event.fact
            for event in await desk.store.events(session_id, limit=1000)
            if isinstance(event.fact, ResultsShortened)
        ]
        assert 1 <= len(shortenings) <= 6
        assert model.checkpoints == [], "there was no need of a checkpoint: the results made the room"
        last = model.bodies[-1].decode()
        assert "line of file 0" not in last and "began with: [0.txt: lines 1-151" in last
        assert last.count(f"line of file {CALLS - 1}") == 150, "the newest are whole"
        assert shared_with_the_one_before(model.bodies, set()) >= 0.8
        assert await desk.turn(session_id, "what was the first?") == "succeeded"
        assert model.bodies[-1].decode().count("line of file 0") == 150
        assert await desk.turn(session_id, "another's") == "succeeded"
        assert "No call call_of_another_session of this session has a result." in model.bodies[-1].decode()


async def test_after_a_restart_the_model_is_told_the_same_to_the_byte(tmp_path: Path) -> None:
    model = CheckingModel(looks_long, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        for n in range(CALLS):
            (desk.workspace / f"{n}.txt").write_text(f"file {n} begins\n" + f"line of file {n}\n" * 150)
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        assert await desk.turn(session_id, "look at all of them") == "succeeded"
    before = model.bodies[-1]
    async with open_desk(tmp_path, model) as desk:
        assert await desk.turn(session_id, "and now?") == "succeeded"
    assert b"[Shortened: " in before
    assert model.bodies[-1].startswith(before.removesuffix(b"]]"))
