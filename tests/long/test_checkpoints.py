"""Checkpoints on demand: what interrupts them, and what is in force then (R6.2)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from long_session import CHECKPOINT, CheckingModel, Reply, open_desk

from standfast.errors import Busy, NotAvailable

WINDOW = 40_000


def answers(messages: list[dict[str, Any]]) -> Reply:
    return f"Answer {len(messages)}.", []


@pytest.mark.scenario("a42")
async def test_a_message_during_a_checkpoint_goes_ahead_and_the_history_is_whole(tmp_path: Path) -> None:
    model = CheckingModel(answers, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        session_id = (await desk.sessions.create(desk.workspace.as_uri())).row.session_id
        for n in range(5):
            await desk.turn(session_id, f"message {n}")
        before = await desk.store.events(session_id, after_seq=0, limit=1000)
        model.gate = asyncio.Event()
        compacting = asyncio.create_task(desk.sessions.compact(session_id))
        await asyncio.wait_for(model.checkpointing.wait(), 10)
        with pytest.raises(Busy):
            await desk.sessions.compact(session_id)
        assert await desk.turn(session_id, "never mind that") == "succeeded"
        with pytest.raises(NotAvailable):
            await compacting
        after = await desk.store.events(session_id, after_seq=0, limit=1000)
        assert after[: len(before)] == before
        assert "summary_created" not in [event.fact.type for event in after]
        assert all(f"message {n}" in model.bodies[-1].decode() for n in range(5))
        model.gate.set()
        await desk.sessions.compact(session_id)
        assert (await desk.sessions.get(session_id)).row.summary_seq > 0
        await desk.turn(session_id, "and now")
        assert CHECKPOINT.splitlines()[1] in model.bodies[-1].decode()


async def test_the_newest_turns_stay_word_for_word_behind_a_checkpoint(tmp_path: Path) -> None:
    model = CheckingModel(answers, WINDOW)
    async with open_desk(tmp_path, model) as desk:
        session_id = (await desk.sessions.create(desk.workspace.as_uri())).row.session_id
        await desk.turn(session_id, "old " * 9_000)
        for n in range(4):
            await desk.turn(session_id, f"newer {n}")
        await desk.sessions.compact(session_id)
        await desk.turn(session_id, "now")
        sent = model.bodies[-1].decode()
        assert "old old old" not in sent
        assert all(f'"newer {n}"' in sent for n in range(4))
        assert sent.index("<summary>") < sent.index('"newer 0"') < sent.index('"newer 3"')


async def test_a_checkpoint_that_fails_is_tried_again(tmp_path: Path) -> None:
    model = CheckingModel(answers, WINDOW, fail_checkpoints=1)
    async with open_desk(tmp_path, model) as desk:
        session_id = (await desk.sessions.create(desk.workspace.as_uri())).row.session_id
        await desk.turn(session_id, "hello")
        await desk.sessions.compact(session_id)
        events = await desk.store.events(session_id, after_seq=0, limit=1000)
        types = [event.fact.type for event in events]
        assert types.count("model_error") == types.count("summary_created") == 1
        assert types.index("model_error") < types.index("summary_created")
