"""recovery.md, what the daemon does: each promise through the wire, on a daemon that was killed at a named place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import ConnectionLost, Json, RequestFailed
from support import Editor, RunningDaemon, configure, open_socket, start_daemon
from support.waiting import until
from wire.opened_files import opened_files

OLD, NEW = "x = 1\n", "x = 2\n"


def model(request: Request) -> Answer:
    """Two edits, the second of which is never begun; or a command that ends when a file is there."""
    if request.last_text == "edit":
        edit = {"old_text": "x = 1", "new_text": "x = 2"}
        return reply("I edit.", tools=[tool("edit_file", path="a.py", **edit), tool("edit_file", path="b.py", **edit)])
    if request.last_text == "run":
        waits = "echo x >> ran.txt; until test -e go; do sleep 0.05; done; echo over"
        return reply("I run.", tools=[tool("run_command", command=waits)])
    return reply("Well.")


@pytest.fixture
def api(home: Path, workspace: Path) -> Iterator[FakeApi]:
    """The model; two more files in the workspace."""
    (workspace / "b.py").write_text(OLD)
    (workspace / "c.py").write_text(OLD)
    with FakeApi(model) as fake:
        configure(home, model={"base_url": fake.url})
        yield fake
        assert not fake.refused


def start(home: Path, api: FakeApi, failpoints: str | None = None) -> RunningDaemon:
    return start_daemon(
        home, {"ANTHROPIC_API_KEY": api.key, **({"FAILPOINTS": failpoints} if failpoints is not None else {})}
    )


async def killed_in_the_first_edit(home: Path, workspace: Path, api: FakeApi) -> str:
    """A daemon dies once a.py is in place and before anybody was told; a message waits. Returns the session."""
    daemon = start(home, api, "after_exchange=kill@1")
    session_id = ""
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace, mode="ask")
        await editor.start(session_id, "edit")
        await editor.wait_for(lambda: editor.asked, "the question")
        await editor.start(session_id, "and then this")
        editor.decide("allow")
        await daemon.exited()
    assert (workspace / "a.py").read_text() == NEW
    return session_id


async def history(editor: Editor, session_id: str) -> list[Json]:
    return (await editor.request("standfast/session/events", {"sessionId": session_id, "afterSeq": 0, "limit": 1000}))[
        "events"
    ]


def of(stored: list[Json], type_: str, call_id: str) -> list[Json]:
    return [event for event in stored if event["type"] == type_ and event.get("callId") == call_id]


@pytest.mark.requirement("R-RECOVER-3")
@pytest.mark.requirement("R-RECOVER-4")
@pytest.mark.requirement("R-RECOVER-5")
@pytest.mark.requirement("R-RECOVER-6")
@pytest.mark.requirement("R-RECOVER-8")
@pytest.mark.requirement("R-RECOVER-10")
@pytest.mark.requirement("R-RECOVER-11")
async def test_what_was_begun_is_judged_by_the_file_what_was_not_did_not_happen_and_the_model_is_told(
    home: Path, workspace: Path, api: FakeApi
) -> None:
    session_id = await killed_in_the_first_edit(home, workspace, api)
    daemon = start(home, api)
    with opened_files(workspace) as opened:
        async with open_socket(home, [workspace]) as editor:
            attached = await editor.attach(session_id)
    assert "a.py" in opened and not {"b.py", "c.py"} & set(opened), "only the uncertain call's target is looked at"
    async with open_socket(home, [workspace]) as editor:
        [first, second] = [event for event in attached["events"] if event["type"] == "tool_call"]
        judged = [event["status"] for event in of(attached["events"], "tool_recovery", first["callId"])]
        assert judged == ["uncertain", "applied"]
        [result] = of(attached["events"], "tool_result", first["callId"])
        assert (
            result["recovered"] is True
            and result["seq"] > of(attached["events"], "tool_recovery", first["callId"])[1]["seq"]
        )
        assert of(attached["events"], "tool_recovery", second["callId"]) == []
        [never] = of(attached["events"], "tool_result", second["callId"])
        assert never["status"] == "cancelled" and never["recovered"] is True
        assert [call["callId"] for call in attached["recovery"]["calls"]] == [first["callId"]]
        assert [item["text"] for item in attached["queue"]] == ["and then this"] and attached["queueHeld"] is True
        again = await editor.attach(session_id)
        assert again["events"] == attached["events"], "looking again adds nothing"
        await editor.run_end(await editor.start(session_id, "go on"))
        told = api.requests[-1].whole_text
        assert "<recovery>" in told and "applied" in told
        assert [item["text"] for item in (await editor.attach(session_id))["queue"]] == ["and then this"]
    assert (workspace / "b.py").read_text() == OLD
    daemon.end()


@pytest.mark.requirement("R-RECOVER-9")
async def test_recovery_that_dies_itself_comes_to_the_same_verdict(home: Path, workspace: Path, api: FakeApi) -> None:
    session_id = await killed_in_the_first_edit(home, workspace, api)
    deaths = 0
    for point in ("before_append=kill@1", "after_append=kill@1", "in_recovery=kill@1"):
        try:
            daemon = start(home, api, point)
        except AssertionError:  # it died before it answered
            deaths += 1
            continue
        with contextlib.suppress(ConnectionLost, RequestFailed, OSError):
            async with open_socket(home, [workspace]) as editor:
                await editor.attach(session_id)
        deaths += await daemon.exited() < 0
    assert deaths == 3, "a point that is never reached tests nothing"
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        await editor.attach(session_id)
        stored = await history(editor, session_id)
    assert [event["status"] for event in stored if event["type"] == "tool_recovery"] == ["uncertain", "applied"]
    assert len([event for event in stored if event["type"] == "run_finished"]) == 1
    daemon.end()


@pytest.mark.requirement("R-RECOVER-3")
@pytest.mark.requirement("R-RECOVER-4")
@pytest.mark.requirement("R-RECOVER-6")
@pytest.mark.requirement("R-RECOVER-7")
async def test_a_command_that_goes_on_is_running_blocks_nothing_and_is_finished_once_it_ended(
    home: Path, workspace: Path, api: FakeApi
) -> None:
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        await editor.start(session_id, "run")
        await until(lambda: (workspace / "ran.txt").exists(), "the command's effect")
        daemon.kill()
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        attached = await editor.attach(session_id)
        [call] = attached["recovery"]["calls"]
        assert call["verdict"] == "running"
        assert of(attached["events"], "tool_result", call["callId"]) == []
        end = await editor.run_end(await editor.start(session_id, "go on"))
        assert end["status"] == "succeeded"
        assert "running" in api.requests[-1].whole_text
        (workspace / "go").touch()
        resolve = {"callId": call["callId"], "action": "verify"}

        async def settled() -> bool:
            with contextlib.suppress(RequestFailed):
                found = await editor.request("standfast/recovery/resolve", resolve)
                return found["call"]["verdict"] == "finished"
            return True  # nothing is left to verify

        while not await settled():
            pass
        stored = await history(editor, session_id)
        judged = [event["status"] for event in of(stored, "tool_recovery", call["callId"])]
        assert judged == ["uncertain", "running", "finished"]
        [result] = of(stored, "tool_result", call["callId"])
        assert result["recovered"] is True and result["exitCode"] == 0
    assert (workspace / "ran.txt").read_text() == "x\n", "it ran once"
    daemon.end()


async def killed_before_the_first_edit(home: Path, workspace: Path, api: FakeApi) -> str:
    daemon = start(home, api, "before_effect=kill@1")
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        with contextlib.suppress(ConnectionLost):
            await editor.start(session_id, "edit")
        await daemon.exited()
    return session_id


@pytest.mark.requirement("R-RECOVER-19")
async def test_what_does_not_fit_is_refused_and_changes_nothing(home: Path, workspace: Path, api: FakeApi) -> None:
    session_id = await killed_before_the_first_edit(home, workspace, api)
    (workspace / "a.py").write_text("neither\n")
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        [call] = (await editor.attach(session_id))["recovery"]["calls"]
        assert call["verdict"] == "diverged"
        for action in ("complete", "undo", "stop", "removeLock"):
            with pytest.raises(RequestFailed) as refused:
                await resolve(editor, call, action)
            assert refused.value.reason == "ActionNotAvailable", action
        assert (workspace / "a.py").read_text() == "neither\n"
        stored = await history(editor, session_id)
        assert not {"recovery_resolved", "conflict_raised"} & {event["type"] for event in stored}
        (workspace / "a.py").write_text(OLD)  # as the refusal advises
        assert (await resolve(editor, call, "verify"))["verdict"] == "not_applied"
        assert (await resolve(editor, call, "complete"))["verdict"] == "applied"
    assert (workspace / "a.py").read_text() == NEW
    daemon.end()


async def test_a_command_that_has_ended_cannot_be_stopped(home: Path, workspace: Path, api: FakeApi) -> None:
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        await editor.start(session_id, "run")
        await until(lambda: (workspace / "ran.txt").exists(), "the command's effect")
        daemon.kill()
    again = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        [call] = (await editor.attach(session_id))["recovery"]["calls"]
        assert (await resolve(editor, call, "stop"))["verdict"] == "finished"
        with pytest.raises(RequestFailed) as refused:
            await resolve(editor, call, "stop")
        assert refused.value.reason == "ActionNotAvailable"
    again.end()


async def test_the_difference_of_a_call_that_did_not_happen_is_what_it_meant_to_do(
    home: Path, workspace: Path, api: FakeApi
) -> None:
    session_id = await killed_before_the_first_edit(home, workspace, api)
    daemon = start(home, api)
    async with open_socket(home, [workspace]) as editor:
        attached = await editor.attach(session_id)
        [call] = attached["recovery"]["calls"]
        assert call["verdict"] == "not_applied"
        shown = await editor.request("standfast/diff/get", {"callId": call["callId"]})
        assert shown == {"files": [{"uri": (workspace / "a.py").as_uri(), "before": OLD, "after": NEW}]}
        of_run = await editor.request("standfast/diff/get", {"runId": attached["session"]["lastRun"]["runId"]})
        assert of_run == {"files": []}, "the run changed nothing"
    daemon.end()


async def resolve(editor: Editor, call: Json, action: str) -> Json:
    return (await editor.request("standfast/recovery/resolve", {"callId": call["callId"], "action": action}))["call"]
