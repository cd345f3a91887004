"""F17 at its full size: 10,000 sessions of 40 events, 390 MB in one store. `pytest tests/full/test_ten_thousand_long.py -s`

What it costs is printed; what is asserted is that the daemon's memory stays bounded and that every question has its answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from crash import oracle
from standfast.clock import SystemClock
from standfast.events.types import AssistantMessage, RunFinished, RunStarted, SessionCreated, TextContent, UserMessage
from standfast.store.past import Intake, Past
from standfast.store.sqlite import SqliteStore
from support import Editor, configure, environment, open_socket, start_daemon
from support.daemon import places

SESSIONS, TURNS = 10_000, 10
"""A turn is four events, and the session's own comes before them."""
BYTES_LEAST = 390 * 1024 * 1024
RSS_MAX = 220 * 1024 * 1024
GROWN_MAX = 60 * 1024 * 1024
"""From the first answer to the last: nothing may keep what it read."""
SAID = 1700
"""Bytes of text in a turn that cannot be packed."""


def history(folder: Path, number: int, chance: random.Random) -> Iterator[Past]:
    yield Past(number, None, SessionCreated(workspace_uri=folder.as_uri(), title=f"session {number}"))
    for turn in range(TURNS):
        run_id, said = f"run_{number}_{turn}", chance.randbytes(SAID).hex()
        for fact in (
            RunStarted(worker_id="w", boot_id="b", trigger="message"),
            UserMessage(
                message_id=f"msg_{number}_{turn}",
                client_message_id=f"c{turn}",
                content=[TextContent(text=f"wanted{number} {said[:SAID]}")],
            ),
            AssistantMessage(blocks=[{"type": "text", "text": said[SAID:]}], stop_reason="end_turn"),
            RunFinished(status="succeeded"),
        ):
            yield Past(number * 1000 + turn, run_id, fact)


async def fill(store_path: Path, folder: Path) -> None:
    store_path.parent.mkdir(mode=0o700, parents=True)
    store = await SqliteStore.open(store_path, SystemClock())
    chance = random.Random(17)
    try:
        for number in range(SESSIONS):
            await store.take_in(Intake(f"ses_{number}", history(folder, number, chance)))
    finally:
        await store.close()


@asynccontextmanager
async def told(what: str, process: psutil.Process) -> AsyncGenerator[None]:
    begun = time.perf_counter()
    yield
    took, rss = time.perf_counter() - begun, process.memory_info().rss
    sys.stdout.write(f"{what:42} {took * 1000:9.1f} ms   rss {rss >> 20} MiB\n")
    assert rss < RSS_MAX, what


@pytest.mark.timeout(3600)
@pytest.mark.scenario("a33")
async def test_ten_thousand_sessions_in_one_store(home: Path, workspace: Path) -> None:
    configure(home, model={"provider": "scripted"})
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    filling = [sys.executable, __file__, str(places(home).store), str(workspace)]
    subprocess.run(filling, env=env, check=True)
    assert places(home).store.stat().st_size >= BYTES_LEAST
    begun = time.perf_counter()
    daemon = start_daemon(home)
    process = psutil.Process(daemon.pid)
    sys.stdout.write(f"\n{'ready after':42} {(time.perf_counter() - begun) * 1000:9.1f} ms\n")
    async with open_socket(home, [workspace]) as editor:
        await _ask_everything(editor, workspace, process)
        first = process.memory_info().rss
        async with told("every page of the list", process):
            assert await _all_sessions(editor, workspace) == SESSIONS + 1
        async with told("the histories of 500 sessions", process):
            for number in range(0, SESSIONS, SESSIONS // 500):
                assert len(await oracle.history(editor, f"ses_{number}")) == 1 + 4 * TURNS
        async with told("the same again", process):
            await _ask_everything(editor, workspace, process)
        assert process.memory_info().rss - first < GROWN_MAX
    async with told("doctor", process):
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "standfast", "doctor", "--json"], env=environment(home),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert json.loads(done.stdout)["ok"], done.stdout
    assert daemon.end() == 0


async def _ask_everything(editor: Editor, workspace: Path, process: psutil.Process) -> None:
    where = {"workspaceUri": workspace.as_uri()}
    async with told("list 50 of the folder", process):
        assert len((await editor.request("standfast/session/list", {**where, "limit": 50}))["sessions"]) == 50
    async with told("list 50 of all", process):
        assert len((await editor.request("standfast/session/list", {"limit": 50}))["sessions"]) == 50
    async with told("a word that one session has", process):
        found = (await editor.request("standfast/session/list", {**where, "query": "wanted7777"}))["sessions"]
        assert [one["sessionId"] for one in found] == ["ses_7777"]
    async with told("statistics of all runs", process):
        page = await editor.request("standfast/run/list", {**where, "limit": 50})
        assert len(page["runs"]) == 50
    async with told("attach", process):
        assert (await editor.attach("ses_5000"))["headSeq"] >= 1 + 4 * TURNS
    async with told("a run in a new session", process):
        session_id = await editor.create(workspace) if not editor.events(type_="run_finished") else "ses_5000"
        assert (await editor.run_end(await editor.start(session_id, "/read a.py")))["status"] == "succeeded"


async def _all_sessions(editor: Editor, workspace: Path) -> int:
    cursor: dict[str, str] = {}
    count = 0
    for _ in itertools.count():
        where = {"workspaceUri": workspace.as_uri(), "limit": 500, **cursor}
        page = await editor.request("standfast/session/list", where)
        count += len(page["sessions"])
        if "nextCursor" not in page:
            return count
        cursor = {"cursor": page["nextCursor"]}
    raise AssertionError


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), Path(sys.argv[2])))
