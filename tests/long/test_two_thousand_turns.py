"""Very many turns in a small window: valid, cached, true, and at the same cost (issue F, "What must be shown" 1)."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from long_session import CheckingModel, Desk, Reply, open_desk, shared_with_the_one_before

from standfast.events.types import (
    Intent,
    RunFinished,
    RunStarted,
    Target,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
)
from standfast.session.context_of import ContextReader

WINDOW = 9_000
PLAN = [{"text": "the one step that stays", "status": "in_progress"}]


def script(messages: list[dict[str, Any]]) -> Reply:
    """Each turn reads a file, then says something of about a hundred words."""
    last = messages[-1]["content"]
    if any(block["type"] == "tool_result" for block in last):
        return "I have read it. " + "So it goes on and on. " * 8, []
    if "make a plan" in last[-1]["text"]:
        return "A plan.", [("update_plan", {"goal": "the long way", "steps": PLAN})]
    return "Let me look.", [("read_file", {"path": "notes.txt"})]


async def an_interruption(desk: Desk, session_id: str) -> None:
    """As facts: a patch that was half applied, and a write that the person refused, in a run that died."""
    run_id = "run_died"
    uri = (desk.workspace / "half.py").as_uri()
    await desk.journal.emit(
        session_id,
        [
            RunStarted(worker_id="w", boot_id="b", trigger="message"),
            ToolCall(call_id="call_refused", provider_call_id="x1", tool="write_file", args={"path": "secret.txt"}),
            ToolResult(call_id="call_refused", status="denied", content="The person said no."),
            ToolCall(call_id="call_half", provider_call_id="x2", tool="apply_patch", args={"patch": "half.py"}),
            ToolStarted(call_id="call_half", intents=[Intent.model_validate({"kind": "foreign"})]),
            ToolRecovery(call_id="call_half", status="uncertain"),
            ToolRecovery(call_id="call_half", status="partial", targets=[Target(uri=uri, verdict="partial")]),
            RunFinished(status="interrupted"),
        ],
        run_id=run_id,
    )


async def cost_of_context(desk: Desk, session_id: str) -> float:
    """Seconds of building the context from nothing, the median of several."""
    times: list[float] = []
    for _ in range(7):
        begun = time.perf_counter()
        (await ContextReader(desk.store, session_id, frozenset()).read()).messages()
        times.append(time.perf_counter() - begun)
    return median(times)


async def many_turns(place: Path, turns: int) -> None:
    """The whole story; also the full tier's."""
    model = CheckingModel(script, WINDOW)
    async with open_desk(place, model) as desk:
        (desk.workspace / "notes.txt").write_text("a line of notes\n" * 20)
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        assert await desk.turn(session_id, "turn 1: make a plan") == "succeeded"
        assert await desk.turn(session_id, "turn 2: look") == "succeeded"
        await an_interruption(desk, session_id)
        early = 0.0
        for n in range(4, turns + 1):
            assert await desk.turn(session_id, f"turn {n}: look again") == "succeeded"
            if n == 20:
                early = await cost_of_context(desk, session_id)
        late = await cost_of_context(desk, session_id)
        last = model.bodies[-1].decode()
        assert "half.py" in last and "partial" in last
        assert "secret.txt" in last and "refused" in last
        assert "the one step that stays" in last
        assert model.checkpoints
        assert shared_with_the_one_before(model.bodies, set(model.checkpoints)) >= 0.8
        assert late < 3 * early + 0.005, (early, late)


@pytest.mark.requirement("R6.2")
@pytest.mark.requirement("R1.4")
async def test_a_very_long_session_stays_valid_small_cached_and_true(tmp_path: Path) -> None:
    await many_turns(tmp_path, 160)
