"""What clients see when a daemon starts on what another one left (recovery.md). The first daemon gets kill -9."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from editor.desk import code_actions, diagnostics, event, execute, number, place, session, start
from standfast.places import find_places
from support import configure, start_daemon
from wire.raw import Json, Raw, connect_to

CONTENT = {"workspace": {"textDocumentContent": {}}}


@contextlib.asynccontextmanager
async def window(
    home: Path, folder: Path, *, ours: bool = True, capabilities: Json | None = None
) -> AsyncGenerator[Raw]:
    """A daemon's process of its own, and one client with the folder open; at the end it gets SIGKILL."""
    home.mkdir(exist_ok=True)
    configure(home, model={"provider": "scripted"})
    running = start_daemon(home)
    try:
        async with connect_to(find_places({"STANDFAST_HOME": str(home)}).socket) as raw:
            await raw.initialize([folder.as_uri()], ours=ours, capabilities=capabilities)
            yield raw
            running.kill()
    finally:
        running.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


async def interrupted(home: Path, folder: Path) -> tuple[str, str]:
    """(session, run) of a run whose daemon ended while it wrote its answer."""
    async with window(home, folder) as raw:
        session_id = await session(raw, folder)
        run_id = await start(raw, session_id, "/list\n" * 40)
        await event(raw, "tool_result")
        return session_id, run_id


@pytest.mark.requirement("R-RECOVER-1")
@pytest.mark.requirement("R-RECOVER-2")
@pytest.mark.requirement("R-RECOVER-12")
@pytest.mark.requirement("R-RECOVER-13")
async def test_an_interrupted_run_is_told_once_and_nothing_runs_by_itself(tmp_path: Path, folder: Path) -> None:
    session_id, run_id = await interrupted(tmp_path / "home", folder)
    for _ in range(2):
        async with window(tmp_path / "home", folder) as raw:
            attached = await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
            assert attached["session"]["lastRun"] == {"runId": run_id, "status": "interrupted"}
            assert attached["recovery"]["interruptedRun"]["runId"] == run_id
            ends = [e for e in attached["events"] if e["type"] == "run_finished"]
            assert [(e["runId"], e["status"]) for e in ends] == [(run_id, "interrupted")]
            assert attached["events"][-1]["type"] == "run_finished"
            assert (await raw.ask(number(), "standfast/daemon/status"))["runs"] == 0


@pytest.mark.requirement("R-RECOVER-17")
@pytest.mark.requirement("R-RECOVER-18")
async def test_it_stands_on_the_transcript_and_is_resumed_from_there(tmp_path: Path, folder: Path) -> None:
    session_id, run_id = await interrupted(tmp_path / "home", folder)
    document = f"standfast:/session/{session_id}"
    async with window(tmp_path / "home", folder, capabilities=CONTENT) as raw:
        told = await diagnostics(raw, document)
        assert [(d["code"], d["severity"], d["data"]) for d in told["diagnostics"]] == [
            ("interrupted-run", 3, {"sessionId": session_id, "runId": run_id})
        ]
        (resume,) = await code_actions(raw, document, place(0))
        assert resume["title"] == "Resume the run"
        await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        resumed = await execute(raw, resume["command"]["command"], *resume["command"]["arguments"])
        again = await execute(raw, resume["command"]["command"], *resume["command"]["arguments"])
        assert again["runId"] == resumed["runId"] != run_id
        started = await event(raw, "run_started", runId=resumed["runId"])
        assert started["resumesRunId"] == run_id
        await diagnostics(raw, document, empty=True)
        await event(raw, "run_finished", runId=resumed["runId"])


async def test_a_client_without_virtual_documents_gets_a_copy_that_only_its_user_can_read(
    tmp_path: Path, folder: Path
) -> None:
    session_id, _ = await interrupted(tmp_path / "home", folder)
    copy = tmp_path / "home/state/transcripts" / f"{session_id}.md"
    async with window(tmp_path / "home", folder, ours=False) as raw:
        told = await diagnostics(raw, copy.as_uri())
        assert told["diagnostics"][0]["code"] == "interrupted-run"
        assert copy.stat().st_mode & 0o777 == 0o400 and copy.parent.stat().st_mode & 0o777 == 0o700
        assert "/list" in copy.read_text()
        assert [a["title"] for a in await code_actions(raw, copy.as_uri(), place(0))] == ["Resume the run"]


@pytest.mark.requirement("R-RECOVER-7")
@pytest.mark.requirement("R-RECOVER-16")
async def test_a_question_that_was_open_is_asked_again_and_its_answer_carries_the_call_out_once(
    tmp_path: Path, folder: Path
) -> None:
    async with window(tmp_path / "home", folder) as raw:
        session_id = await session(raw, folder, mode="ask")
        run_id = await start(raw, session_id, "/write new.txt\nhello\n/end")
        before = await raw.until(lambda m: m.get("method") == "standfast/permission/request")
    assert not (folder / "new.txt").exists()
    async with window(tmp_path / "home", folder) as raw:
        attached = await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        assert [p["callId"] for p in attached["permissions"]] == [before["params"]["callId"]]
        asked = await raw.until(lambda m: m.get("method") == "standfast/permission/request")
        assert asked["params"] == before["params"]
        assert not (folder / "new.txt").exists()
        answer = {"decision": "allow", "digest": asked["params"]["digest"]}
        raw.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        result = await event(raw, "tool_result", callId=asked["params"]["callId"])
        assert result["status"] == "ok"
        started = await event(raw, "run_started", resumesRunId=run_id)
        await event(raw, "run_finished", runId=started["runId"])
        results = [
            m
            for m in raw.heard
            if m.get("method") == "standfast/event"
            and m["params"]["event"].get("callId") == asked["params"]["callId"]
            and m["params"]["event"]["type"] == "tool_result"
        ]
        assert len(results) == 1
    assert (folder / "new.txt").read_text() == "hello\n"
