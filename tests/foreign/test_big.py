"""A big file costs bounded memory, says how far it is, and can be stopped without leaving anything (issue F.7)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "long"))

from big import taken_in, write_rollout
from long_session import CheckingModel, open_desk

MB = 1024 * 1024


def test_memory_grows_by_far_less_than_the_file(tmp_path: Path) -> None:
    taken = taken_in(tmp_path, 48 * MB, lines=2000)
    assert taken["events"] == 1 + taken["turns"] * 8
    assert taken["progress"] == -(-taken["events"] // 500)
    assert taken["grownMb"] < 32


async def test_stopped_in_the_middle_it_leaves_nothing_and_can_be_taken_in_later(tmp_path: Path) -> None:
    file = tmp_path / "rollout-big.jsonl"
    async with open_desk(tmp_path, CheckingModel(lambda _: ("Answer.", []), 40_000)) as desk:
        write_rollout(file, desk.workspace, 2 * MB)
        reached = asyncio.Event()

        async def progress(events: int) -> None:
            reached.set()
            if events >= 1000:
                await asyncio.Event().wait()

        taking = asyncio.create_task(desk.sessions.import_(file.as_uri(), progress=progress))
        await asyncio.wait_for(reached.wait(), 30)
        assert (await desk.sessions.list())[0] == [], "by half it is in no list"
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert (await desk.sessions.list())[0] == []
        assert await desk.store.workspaces() == []
        view = await desk.sessions.import_(file.as_uri())
        assert view.row.title == "turn 1"
