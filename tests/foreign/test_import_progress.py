"""A big file over the wire: how far it is, and that it can be stopped without leaving anything (issue F.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from big import write_rollout

from standfast.cli.client import RequestFailed
from standfast.clock import SystemClock
from standfast.events.types import SessionCreated
from standfast.store.past import Intake, Past
from standfast.store.sqlite import SqliteStore
from support import Editor

CANCELLED = -32800


def told(editor: Editor, token: str) -> list[dict[str, Any]]:
    return [params["value"] for params in editor.told("$/progress") if params["token"] == token]


async def test_how_far_it_is_is_told_by_the_clients_token(desk: Editor, workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "rollout a b.jsonl"
    turns = write_rollout(file, workspace, 1 << 20)
    params = {"uri": file.as_uri(), "workDoneToken": "mine"}
    session = (await desk.request("standfast/session/import", params))["session"]
    begin, *reports, end = told(desk, "mine")
    assert begin == {"kind": "begin", "title": "Standfast: taking in rollout a b.jsonl"}
    assert end == {"kind": "end"}
    counts = [int(report["message"].removesuffix(" events")) for report in reports]
    assert counts == [*range(500, turns * 8 + 1, 500), turns * 8 + 1]
    await desk.request("standfast/session/import", {"uri": file.as_uri(), "workDoneToken": "again"})
    assert [value["kind"] for value in told(desk, "again")] == ["begin", "end"], "it is here already"
    await desk.request("standfast/session/delete", {"sessionId": session["sessionId"]})


async def test_cancelled_it_leaves_nothing_and_can_be_taken_in_later(
    desk: Editor, workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rollout-big.jsonl"
    write_rollout(file, workspace, 8 << 20)
    ask = {"uri": file.as_uri(), "workDoneToken": "stop"}
    number = desk._next_id  # pyright: ignore[reportPrivateUsage]
    asked = asyncio.ensure_future(desk.request("standfast/session/import", ask))
    await desk.wait_for(lambda: len(told(desk, "stop")) > 1, "the first report")
    await desk.notify("$/cancelRequest", {"id": number})
    with pytest.raises(RequestFailed) as stopped:
        await asked
    assert stopped.value.code == CANCELLED and told(desk, "stop")[-1] == {"kind": "end"}
    where = {"workspaceUri": workspace.as_uri()}
    assert (await desk.request("standfast/session/list", where))["sessions"] == []
    session = (await desk.request("standfast/session/import", {"uri": file.as_uri()}))["session"]
    assert session["title"] == "turn 1"


async def test_a_packed_file_is_refused_with_what_to_do(desk: Editor, tmp_path: Path) -> None:
    file = tmp_path / "rollout-cold.jsonl.zst"
    file.write_bytes(bytes.fromhex("28b52ffd") + b"packed")
    with pytest.raises(RequestFailed) as refused:
        await desk.request("standfast/session/import", {"uri": file.as_uri()})
    assert refused.value.reason == "ImportFailed" and "zstd -d" in refused.value.message


async def test_cancelled_at_any_moment_of_its_first_batch_it_leaves_nothing(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db", SystemClock())
    loop = asyncio.get_running_loop()
    try:
        for steps in range(30):
            read = asyncio.Event()

            def history(read: asyncio.Event = read) -> Iterator[Past]:
                yield Past(1, None, SessionCreated(workspace_uri="file:///w"))
                loop.call_soon_threadsafe(read.set)

            taking = asyncio.ensure_future(store.take_in(Intake("ses_same", history())))
            await read.wait()
            for _ in range(steps):
                await asyncio.sleep(0)
            if taking.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await taking
                assert await store.session("ses_same") is None, steps
            else:
                await store.delete("ses_same")
    finally:
        await store.close()
