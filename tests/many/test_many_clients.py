"""Several windows on one session, and many clients on many (issue D, part 2)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from editor.desk import event, number, session, start
from many.crowd import crowd
from support import configure, start_daemon
from support.daemon import places
from wire.raw import Json, Raw, connect, house

WINDOWS = 6


@pytest.mark.requirement("R-RECOVER-14")
@pytest.mark.requirement("R-RECOVER-15")
async def test_a_hundred_clients_that_come_and_go_all_hold_the_same_history_without_a_gap(
    home: Path, workspace: Path
) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home)
    followers = await crowd(places(home).socket, workspace, clients=100, sessions=20, runs=1, seed=7)
    assert len(followers) == 100
    assert sum(follower.connections for follower in followers) > 200, "they came back"
    assert daemon.end() == 0


async def test_a_question_goes_to_every_window_one_answer_holds_and_all_are_told_the_same(tmp_path: Path) -> None:
    async with house(tmp_path / "home") as parts, contextlib.AsyncExitStack() as stack:
        open_windows = [await stack.enter_async_context(connect(parts)) for _ in range(WINDOWS)]
        for window in open_windows:
            await window.initialize([tmp_path.as_uri()])
        session_id = await session(open_windows[0], tmp_path, mode="ask")
        for window in open_windows[1:]:
            await window.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        run_id = await start(open_windows[0], session_id, "/write new.txt\nhello\n/end")
        asked = [await question(window) for window in open_windows]
        assert all(request["params"] == asked[0]["params"] for request in asked)
        for at, (window, request) in enumerate(zip(open_windows, asked, strict=True)):
            given = {"decision": ("allow", "deny")[at % 2], "digest": request["params"]["digest"]}
            window.send({"jsonrpc": "2.0", "id": request["id"], "result": given})
        told = [await window.told("standfast/permission/resolved") for window in open_windows]
        assert all(one == told[0] for one in told), "one answer, whoever was first"
        ends = [await event(window, "run_finished", runId=run_id) for window in open_windows]
        assert all(end == ends[0] for end in ends)
        assert (tmp_path / "new.txt").exists() == (told[0]["decision"] == "allow")
        histories = [events(window) for window in open_windows]
        shortest = min(len(history) for history in histories)
        assert all(history[-shortest:] == histories[0][-shortest:] for history in histories)
        answers = [e for e in histories[0] if e["type"] == "permission_resolved"]
        assert [answer["decision"] for answer in answers] == [told[0]["decision"]]


async def question(raw: Raw) -> Json:
    return await raw.until(lambda m: m.get("method") == "standfast/permission/request")


def events(raw: Raw) -> list[Json]:
    return [m["params"]["event"] for m in raw.heard if m.get("method") == "standfast/event"]
