"""Goals: the arithmetic, the pauses, the ends, and that nothing goes on by itself which a person did not leave active (R6.3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_session import CheckingModel, Desk, Reply, open_desk

from standfast.events.types import Usage
from standfast.run import goal

WINDOW = 40_000


def goes_on(messages: list[dict[str, Any]]) -> Reply:
    return "A step further.", []


def completes(messages: list[dict[str, Any]]) -> Reply:
    """Reports the goal complete in its third turn."""
    last = messages[-1]["content"]
    turns = sum("Go on towards the goal" in str(message["content"]) for message in messages)
    if turns == 3 and last[0]["type"] != "tool_result":
        return "That is it.", [("update_goal", {"status": "complete", "reason": "all done"})]
    return "A step further.", []


class Pauses:
    """Pauses that wait for the test."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[float] = asyncio.Queue()
        self.let: asyncio.Semaphore = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.put_nowait(seconds)
        await self.let.acquire()


async def begun(desk: Desk) -> str:
    return (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id


async def goal_of(desk: Desk, session_id: str) -> dict[str, Any]:
    found = await desk.sessions.goal_get(session_id)
    assert found is not None
    return found


@given(st.lists(st.integers(0, 10_000), max_size=20), st.integers(1, 50_000))
@pytest.mark.requirement("R6.3")
def test_what_is_used_adds_up_and_a_new_objective_starts_at_zero(calls: list[int], budget: int) -> None:
    made = goal.new("reach it", budget, 1)
    for tokens in calls:
        made = goal.used(made, Usage(input_tokens=tokens, cache_read_input_tokens=1, output_tokens=1), 0.5, 2)
    assert made["tokensUsed"] == sum(calls) + 2 * len(calls)
    assert made["timeUsedSeconds"] == 0.5 * len(calls)
    assert goal.affords(made, budget - made["tokensUsed"])
    assert not goal.affords(made, budget - made["tokensUsed"] + 1)
    assert goal.new("another", budget, 3)["tokensUsed"] == 0


@pytest.mark.requirement("R6.3")
async def test_it_stops_before_the_call_that_would_pass_the_budget(tmp_path: Path) -> None:
    model = CheckingModel(goes_on, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        session_id = await begun(desk)
        await desk.turn(session_id, "hello")
        cost = len(model.bodies[-1]) // 4
        await desk.sessions.goal_set(session_id, "reach it", token_budget=4 * cost)
        while await desk.end_of() == "succeeded":
            pass
        found = await goal_of(desk, session_id)
        assert found["status"] == "budget_limited"
        assert 0 < found["tokensUsed"] <= 4 * cost
        asked = len(model.bodies)
        assert asked > 2
        row = (await desk.sessions.runs(session_id=session_id)).runs[0]
        assert row.error is not None
        assert row.error["reason"] == "BudgetReached"
        widened = await desk.sessions.goal_update(session_id, token_budget=40 * cost)
        assert widened["status"] == "active"
        assert await desk.end_of() == "succeeded"
        await desk.sessions.goal_update(session_id, status="paused")
        again = await desk.sessions.goal_update(session_id, objective="reach that", status="paused")
        assert (again["objective"], again["tokensUsed"], again["timeUsedSeconds"]) == ("reach that", 0, 0)


@pytest.mark.requirement("R6.3")
async def test_turns_are_spaced_and_end_when_the_model_says_that_it_is_done(tmp_path: Path) -> None:
    model, pauses = CheckingModel(completes, WINDOW), Pauses()
    async with open_desk(tmp_path, model, goal_pause_s=7.0, pause=pauses) as desk:
        session_id = await begun(desk)
        await desk.sessions.goal_set(session_id, "reach it")
        for turn in (1, 2, 3):
            assert await asyncio.wait_for(pauses.asked.get(), 10) == 7.0
            assert sum("Go on towards the goal" in body.decode() for body in model.bodies) == turn - 1
            pauses.let.release()
            assert await desk.end_of() == "succeeded"
        found = await goal_of(desk, session_id)
        assert (found["status"], found["reason"]) == ("complete", "all done")
        assert pauses.asked.empty()
        assert desk.sessions.busy() is False


async def test_a_goal_that_is_paused_during_the_pause_starts_no_turn(tmp_path: Path) -> None:
    model, pauses = CheckingModel(goes_on, WINDOW), Pauses()
    async with open_desk(tmp_path, model, pause=pauses) as desk:
        session_id = await begun(desk)
        await desk.sessions.goal_set(session_id, "reach it")
        await asyncio.wait_for(pauses.asked.get(), 10)
        await desk.sessions.goal_update(session_id, status="paused")
        pauses.let.release()
        while desk.sessions.busy():
            await asyncio.sleep(0)
        assert model.bodies == []


async def test_without_a_word_of_the_person_it_goes_on_for_so_many_turns_and_no_more(tmp_path: Path) -> None:
    model = CheckingModel(goes_on, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        session_id = await begun(desk)
        await desk.sessions.goal_set(session_id, "reach it")
        for _ in range(goal.TURNS_MAX):
            assert await desk.end_of() == "succeeded"
        while desk.sessions.busy():
            await asyncio.sleep(0)
        assert (await goal_of(desk, session_id))["status"] == "paused"
        assert len(model.bodies) == goal.TURNS_MAX


@pytest.mark.requirement("R5.1")
async def test_an_active_goal_never_starts_by_itself_after_a_restart(tmp_path: Path) -> None:
    model, pauses = CheckingModel(goes_on, WINDOW), Pauses()
    async with open_desk(tmp_path, model, pause=pauses) as desk:
        session_id = await begun(desk)
        await desk.sessions.goal_set(session_id, "reach it")
        await asyncio.wait_for(pauses.asked.get(), 10)
    again = CheckingModel(goes_on, WINDOW)
    pauses = Pauses()
    async with open_desk(tmp_path, again, pause=pauses) as desk:
        await desk.sessions.open_workspaces([desk.workspace.as_uri()])
        await desk.sessions.attach(session_id)
        assert (await goal_of(desk, session_id))["status"] == "active"
        assert not desk.sessions.busy()
        assert pauses.asked.empty()
        await desk.turn(session_id, "go on then")
        assert await asyncio.wait_for(pauses.asked.get(), 10) == 0.0, "the person went on, so the goal does"
    assert len(again.bodies) == 1


async def test_the_goal_is_told_once_and_stays_where_it_was_told(tmp_path: Path) -> None:
    model = CheckingModel(goes_on, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        session_id = await begun(desk)
        await desk.sessions.goal_set(session_id, "reach the hill")
        await desk.end_of()
        await desk.end_of()
        await desk.sessions.goal_update(session_id, status="paused")
        first, second = model.bodies[0].decode(), model.bodies[1].decode()
        assert first.count("<goal>\\nreach the hill") == second.count("<goal>\\nreach the hill") == 1
        assert second.startswith(first[:-2])


async def test_what_a_checkpoint_costs_counts_for_the_goal(tmp_path: Path) -> None:
    model, pauses = CheckingModel(goes_on, WINDOW), Pauses()
    async with open_desk(tmp_path, model, pause=pauses) as desk:
        session_id = await begun(desk)
        await desk.turn(session_id, "hello")
        await desk.sessions.goal_set(session_id, "reach it")
        await desk.sessions.compact(session_id)
        assert (await goal_of(desk, session_id))["tokensUsed"] == 20
