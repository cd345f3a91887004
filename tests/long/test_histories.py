"""Histories as things: forked, deleted, written out and taken in, over the wire, with a real store (R3.4, issue F.5)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from fake_api import FakeApi, Gate, reply, tool
from standfast.cli.client import Json, RequestFailed
from support import Editor, RunningDaemon
from support.daemon import places
from support.waiting import until


async def worked(desk: Editor, module_api: FakeApi, workspace: Path, text: str = "write it") -> tuple[str, int]:
    """A session in which a file was written; its id and its newest seq."""
    session_id = await desk.create(workspace)
    module_api.push(reply(tools=[tool("write_file", path="new.txt", content=f"{text}\n")]), reply("Written."))
    end = await desk.run_end(await desk.start(session_id, text))
    assert end["status"] == "succeeded"
    return session_id, end["seq"]


async def events_of(desk: Editor, session_id: str) -> list[Json]:
    return (await desk.request("standfast/session/events", {"sessionId": session_id, "afterSeq": 0}))["events"]


def ids_in(events: list[Json]) -> set[str]:
    return {event[key] for event in events for key in ("callId", "runId", "messageId") if key in event}


@pytest.mark.requirement("R3.4")
async def test_a_fork_has_the_same_history_under_new_ids_and_goes_its_own_way(
    desk: Editor, module_api: FakeApi, workspace: Path
) -> None:
    session_id, _ = await worked(desk, module_api, workspace)
    before = await events_of(desk, session_id)
    forked = (await desk.request("standfast/session/fork", {"sessionId": session_id}))["session"]
    copy = await events_of(desk, forked["sessionId"])
    assert [event["type"] for event in copy[: len(before)]] == [event["type"] for event in before]
    assert not ids_in(copy) & ids_in(before)
    module_api.push(reply("Yes."))
    await desk.attach(forked["sessionId"])
    end = await desk.run_end(await desk.start(forked["sessionId"], "do you remember?"))
    assert end["status"] == "succeeded"
    assert "Written." in json.dumps(module_api.requests[-1].body["messages"])
    assert await events_of(desk, session_id) == before
    assert not module_api.refused


async def test_a_fork_in_the_middle_of_a_call_has_it_cancelled_and_the_original_is_untouched(
    desk: Editor, module_api: FakeApi, workspace: Path
) -> None:
    session_id, _ = await worked(desk, module_api, workspace)
    started = next(event for event in await events_of(desk, session_id) if event["type"] == "tool_started")
    asked = {"sessionId": session_id, "atSeq": started["seq"]}
    forked = (await desk.request("standfast/session/fork", asked))["session"]
    results = [event for event in await events_of(desk, forked["sessionId"]) if event["type"] == "tool_result"]
    assert [result["status"] for result in results] == ["cancelled"]
    assert forked["lastRun"]["status"] == "interrupted"
    attached = await desk.attach(forked["sessionId"])
    assert not attached.get("recovery", {}).get("calls")
    module_api.push(reply("On we go."))
    end = await desk.run_end(await desk.start(forked["sessionId"], "go on"))
    assert end["status"] == "succeeded"
    assert not module_api.refused


async def test_a_fork_at_an_event_that_is_not_there_is_refused(
    desk: Editor, module_api: FakeApi, workspace: Path
) -> None:
    session_id = await desk.create(workspace)
    with pytest.raises(RequestFailed) as refused:
        await desk.request("standfast/session/fork", {"sessionId": session_id, "atSeq": 99})
    assert refused.value.reason == "ActionNotAvailable"


async def test_a_deleted_session_is_gone_with_the_bytes_that_nobody_else_uses(
    desk: Editor, module_api: FakeApi, workspace: Path, module_daemon: RunningDaemon
) -> None:
    session_id, _ = await worked(desk, module_api, workspace, "onlyhere")
    store = places(module_daemon.home).store

    def count(statement: str) -> int:
        with sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True) as connection:
            return connection.execute(statement).fetchone()[0]

    forked = (await desk.request("standfast/session/fork", {"sessionId": session_id}))["session"]["sessionId"]
    ours = f"blob_id IN (SELECT blob_id FROM blob_uses WHERE session_id IN ('{session_id}', '{forked}'))"
    with sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True) as connection:
        names = [row[0] for row in connection.execute(f"SELECT blob_id FROM blobs WHERE {ours}")]
    here = "SELECT count(*) FROM blobs WHERE blob_id IN (" + ", ".join(f"'{name}'" for name in names) + ")"
    assert names
    await desk.request("standfast/session/delete", {"sessionId": session_id})
    assert count(here) == len(names), "the copy still uses them"
    await desk.request("standfast/session/delete", {"sessionId": forked})
    assert count(here) == 0
    for table in ("sessions", "events", "runs", "tool_calls", "messages", "seen_files", "blob_uses", "spent"):
        assert count(f"SELECT count(*) FROM {table} WHERE session_id IN ('{session_id}', '{forked}')") == 0, table
    assert count("SELECT count(*) FROM words WHERE words MATCH 'onlyhere'") == 0
    with pytest.raises(RequestFailed) as gone:
        await desk.request("standfast/session/attach", {"sessionId": session_id})
    assert gone.value.reason == "SessionNotFound"


async def test_a_session_is_not_deleted_while_it_runs(desk: Editor, module_api: FakeApi, workspace: Path) -> None:
    gate = Gate()
    module_api.push(reply("Let me", " see.").insert(gate, after="text_delta"))
    session_id = await desk.create(workspace)
    run_id = await desk.start(session_id, "wait")
    await gate.reached()
    with pytest.raises(RequestFailed) as busy:
        await desk.request("standfast/session/delete", {"sessionId": session_id})
    assert busy.value.reason == "SessionBusy"
    gate.release()
    await desk.run_end(run_id)


@pytest.mark.requirement("R3.4")
async def test_what_was_written_out_and_deleted_comes_back_as_it_was_and_only_once(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path
) -> None:
    session_id, _ = await worked(desk, module_api, workspace)
    before = await events_of(desk, session_id)
    place = tmp_path / "out"
    asked = {"sessionId": session_id, "directoryUri": place.as_uri()}
    await desk.request("standfast/session/export", asked)
    await desk.request("standfast/session/delete", {"sessionId": session_id})
    for _ in range(2):
        taken = (await desk.request("standfast/session/import", {"uri": place.as_uri()}))["session"]
        assert taken["sessionId"] == session_id
    assert await events_of(desk, session_id) == before
    listed = await desk.request("standfast/session/list", {"workspaceUri": workspace.as_uri()})
    assert [session["sessionId"] for session in listed["sessions"]] == [session_id]


async def test_a_run_that_was_going_on_when_the_history_was_written_is_interrupted_where_it_is_taken_in(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path
) -> None:
    gate = Gate()
    module_api.push(reply("Let me", " see.").insert(gate, after="text_delta"))
    session_id = await desk.create(workspace)
    run_id = await desk.start(session_id, "wait")
    await gate.reached()
    place = tmp_path / "out"
    await desk.request("standfast/session/export", {"sessionId": session_id, "directoryUri": place.as_uri()})
    gate.release()
    await desk.run_end(run_id)
    await desk.request("standfast/session/delete", {"sessionId": session_id})
    taken = (await desk.request("standfast/session/import", {"uri": place.as_uri()}))["session"]
    assert taken["lastRun"]["status"] == "interrupted"


async def test_an_archived_session_is_packed_and_read_as_before(
    desk: Editor, module_api: FakeApi, workspace: Path, module_daemon: RunningDaemon
) -> None:
    session_id, _ = await worked(desk, module_api, workspace)
    before = await events_of(desk, session_id)
    await desk.request("standfast/session/update", {"sessionId": session_id, "status": "archived"})
    store = places(module_daemon.home).store

    def packed() -> bool:
        with sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True) as connection:
            warm = "SELECT count(*) FROM events WHERE typeof(body) = 'text' AND session_id = ?"
            return connection.execute(warm, (session_id,)).fetchone()[0] == 0

    await until(packed, "packed events")
    assert (await events_of(desk, session_id))[: len(before)] == before
    attached = await desk.attach(session_id, afterSeq=before[-1]["seq"], afterHash=before[-1]["hash"])
    assert "damage" not in attached
    await desk.request("standfast/session/update", {"sessionId": session_id, "status": "active"})
    module_api.push(reply("Still here."))
    end = await desk.run_end(await desk.start(session_id, "wake up"))
    assert end["status"] == "succeeded"
    assert "Written." in json.dumps(module_api.requests[-1].body["messages"])
