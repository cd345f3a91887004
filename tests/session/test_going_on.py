"""After a crash nothing runs by itself, and everything the person wrote is there (R5, R7, design.md "Going on")."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_api import FakeApi, Gate, Request, http_error, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import RequestFailed
from support import Editor, RunningDaemon, configure, environment, open_editor, start_daemon
from support.waiting import until


def key_of(api: FakeApi) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": api.key}


async def session_of(editor: Editor, workspace: Path) -> dict[str, object]:
    [session] = (await editor.request("standfast/session/list", {"workspaceUri": workspace.as_uri()}))["sessions"]
    return session


@pytest.mark.scenario("b11")
async def test_a_run_that_died_is_interrupted_before_anybody_attaches(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    gate = Gate()
    fake_api.push(reply("Let me", " see.").insert(gate, after="text_delta"))
    async with open_editor(daemon.home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        await editor.start(session_id, "fix it")
        await gate.reached()
        daemon.kill()
    gate.release()
    again = start_daemon(daemon.home, key_of(fake_api))
    try:
        async with open_editor(daemon.home, [workspace]) as editor:
            session = await session_of(editor, workspace)
            assert session["lastRun"]["status"] == "interrupted"  # type: ignore[index]
            fake_api.push(reply("Here."))
            end = await editor.attach(session_id) and await editor.run_end(
                await editor.start(session_id, "still there?")
            )
            assert end["status"] == "succeeded"
            assert not fake_api.refused
    finally:
        again.end()


@pytest.mark.requirement("R5.1")
async def test_nothing_reaches_the_model_and_nothing_runs_until_the_person_acts(home: Path, workspace: Path) -> None:
    def script(request: Request) -> Answer:
        if request.last_text == "count":
            return reply(
                tools=[
                    tool("run_command", command="echo x >> count.txt"),
                    tool("run_command", command="echo y >> count.txt; exec sleep 60"),
                ]
            )
        return reply("So be it.")

    with FakeApi(script) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, key_of(api))
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await editor.start(session_id, "count")
            await editor.start(session_id, "and then this")
            await editor.event("tool_result", status="ok")
            second = (
                await editor.wait_for(
                    lambda: len(editor.events(type_="tool_started")) == 2 and editor.events(type_="tool_started")
                )
            )[1]
            await until(lambda: (workspace / "count.txt").read_text() == "x\ny\n", "the second command's effect")
            daemon.kill()
        asked = len(api.requests)
        again = start_daemon(home, key_of(api))
        try:
            async with open_editor(home, [workspace]) as editor:
                attached = await editor.attach(session_id)
                assert [call["callId"] for call in attached["recovery"]["calls"]] == [second["callId"]]
                assert attached["recovery"]["calls"][0]["verdict"] == "running"
                assert [item["text"] for item in attached["queue"]] == ["and then this"]
                assert attached["queueHeld"] is True
                assert len(api.requests) == asked
                assert (workspace / "count.txt").read_text() == "x\ny\n"
                stopped = await editor.request(
                    "standfast/recovery/resolve", {"callId": second["callId"], "action": "stop"}
                )
                assert stopped["call"]["verdict"] == "finished"
                run_id = await editor.start(session_id, "go on")
                await editor.run_end(run_id)
                queue = await editor.request("standfast/queue/list", {"sessionId": session_id})
                assert [item["text"] for item in queue["queue"]] == ["and then this"] and queue["queueHeld"] is True
                await editor.request("standfast/queue/resume", {"sessionId": session_id})
                await editor.event("run_started", trigger="queue")
                await editor.wait_for(lambda: len(editor.events(type_="run_finished")) >= 2)
            assert not api.refused
            assert (workspace / "count.txt").read_text() == "x\ny\n"
        finally:
            again.end()


@pytest.mark.scenario("b12")
@pytest.mark.scenario("a30")
async def test_what_was_typed_during_a_run_waits_and_survives_a_stop(
    editor: Editor, daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    gate = Gate()
    fake_api.push(reply("Working", " on it.").insert(gate, after="text_delta"))
    session_id = await editor.create(workspace)
    run_id = await editor.start(session_id, "one")
    await gate.reached()
    async with open_editor(daemon.home, [workspace]) as other:
        await other.attach(session_id)
        two = await other.request(
            "standfast/run/start", {"sessionId": session_id, "text": "two", "clientMessageId": "c2"}
        )
        three = await editor.request(
            "standfast/run/start", {"sessionId": session_id, "text": "three", "clientMessageId": "c3"}
        )
        assert (two["status"], two["position"], three["position"]) == ("queued", 0, 1)
        again = await editor.request(
            "standfast/run/start", {"sessionId": session_id, "text": "two", "clientMessageId": "c2"}
        )
        assert again["runId"] == two["runId"]
        run = (await editor.request("standfast/run/cancel", {"runId": run_id}))["run"]
        gate.release()
        assert run["status"] == "cancelled"
        queue = await editor.request("standfast/queue/list", {"sessionId": session_id})
        assert [item["text"] for item in queue["queue"]] == ["two", "three"] and queue["queueHeld"] is True
        await other.event("run_finished", runId=run_id)
        mine, theirs = editor.events(session_id), other.events(session_id)
        assert theirs == mine[-len(theirs) :]


@pytest.mark.scenario("d10")
async def test_the_run_goes_on_when_the_editor_closes_and_the_missed_events_are_told(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    gate = Gate()
    fake_api.push(reply("One", " two").insert(gate, after="text_delta"))
    async with open_editor(daemon.home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        run_id = await editor.start(session_id, "go")
        await gate.reached()
        await editor.event("model_request")
        last = editor.events(session_id)[-1]
    gate.release()
    async with open_editor(daemon.home, [workspace]) as editor:
        attached = await editor.attach(session_id, afterSeq=last["seq"], afterHash=last["hash"])
        missed = attached["events"]
        if not any(event["type"] == "run_finished" for event in missed):
            await editor.run_end(run_id)
        told = missed + editor.events(session_id)
        assert [event["seq"] for event in told] == list(range(last["seq"] + 1, last["seq"] + 1 + len(told)))
        assert "damage" not in attached
        assert told[-1]["type"] == "run_finished" and told[-1]["status"] == "succeeded"
        text = "".join(event["text"] for event in told if event["type"] == "assistant_chunk")
        whole = next(event for event in told if event["type"] == "assistant_message")
        assert whole["blocks"][0]["text"].endswith(text)
    assert len(fake_api.requests) == 1


@pytest.mark.scenario("b08")
async def test_an_open_permission_survives_a_crash_and_its_answer_carries_the_call_out_once(
    home: Path, workspace: Path
) -> None:
    def script(request: Request) -> Answer:
        return (
            reply(tools=[tool("run_command", command="echo x >> out.txt")])
            if request.last_text == "do it"
            else reply("Done.")
        )

    with FakeApi(script) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, key_of(api))
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="ask")
            await editor.start(session_id, "do it")
            await editor.wait_for(lambda: editor.asked, "the question")
            daemon.kill()
        again = start_daemon(home, key_of(api))
        try:
            async with open_editor(home, [workspace]) as editor:
                attached = await editor.attach(session_id)
                assert [permission["tool"] for permission in attached["permissions"]] == ["run_command"]
                assert not (workspace / "out.txt").exists()
                editor.decide("allow")
                await editor.event("run_finished", status="succeeded")
                [started] = editor.events(type_="run_started")
                assert started["trigger"] == "permission" and started["resumesRunId"]
            assert (workspace / "out.txt").read_text() == "x\n"
            assert not api.refused
        finally:
            again.end()


@pytest.mark.scenario("ATK-35")
async def test_a_late_answer_changes_nothing(
    editor: Editor, daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    fake_api.push(reply(tools=[tool("run_command", command="echo x >> out.txt")]), reply("Done."))
    session_id = await editor.create(workspace, mode="ask")
    async with open_editor(daemon.home, [workspace]) as other:
        await other.attach(session_id)
        run_id = await editor.start(session_id, "do it")
        await editor.wait_for(lambda: editor.asked)
        await other.wait_for(lambda: other.asked)
        editor.decide("deny")
        await other.wait_for(lambda: other.told("standfast/permission/resolved"))
        other.decide("allow")
        await editor.run_end(run_id)
        await other.run_end(run_id)
    assert not (workspace / "out.txt").exists()
    [result] = editor.events(type_="tool_result")
    assert result["status"] == "denied" and "not carried out" in result["content"]


@pytest.mark.scenario("b01")
@pytest.mark.scenario("b15")
async def test_a_stopped_command_is_told_as_started_and_stopped_never_as_not_run(
    editor: Editor, workspace: Path, fake_api: FakeApi
) -> None:
    fake_api.push(
        reply(tools=[tool("run_command", command="touch done; (sleep 300; echo late > late.txt) & sleep 300")]),
        reply("I see."),
    )
    session_id = await editor.create(workspace)
    run_id = await editor.start(session_id, "go")
    started = await editor.event("tool_started")
    await until((workspace / "done").exists, "the command's first effect")
    run = (await editor.request("standfast/run/cancel", {"runId": run_id}))["run"]
    assert run["status"] == "cancelled"
    result = await editor.event("tool_result", callId=started["callId"])
    assert result["status"] == "cancelled"
    await editor.run_end(await editor.start(session_id, "status?"))
    told = fake_api.requests[-1].tool_results
    text = next(iter(told.values()))["content"]
    assert "started" in text and "unknown" in text and "not carried out" not in text
    assert not fake_api.refused


@pytest.mark.scenario("a29")
async def test_tools_act_in_the_sessions_folder_whoever_attaches(
    editor: Editor, daemon: RunningDaemon, workspace: Path, tmp_path: Path, fake_api: FakeApi
) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    (other_folder / "login.py").write_text("B")
    (workspace / "login.py").write_text("A")
    fake_api.push(
        reply(tools=[tool("read_file", path="login.py")]),
        reply(tools=[tool("write_file", path="login.py", content="X")]),
        reply("Done."),
    )
    session_id = await editor.create(workspace)
    async with open_editor(daemon.home, [other_folder]) as there:
        await there.attach(session_id)
        await there.run_end(await there.start(session_id, "go"))
    assert (workspace / "login.py").read_text() == "X" and (other_folder / "login.py").read_text() == "B"


@pytest.mark.scenario("a28")
async def test_a_folder_that_goes_away_ends_the_run_with_its_name_and_is_not_made_anew(
    editor: Editor, workspace: Path, tmp_path: Path, fake_api: FakeApi
) -> None:
    gate = Gate()
    fake_api.push(reply("Now.", tools=[tool("write_file", path="b.txt", content="b")]).insert(gate, after="text_delta"))
    session_id = await editor.create(workspace)
    run_id = await editor.start(session_id, "go")
    await gate.reached()
    workspace.rename(tmp_path / "elsewhere")
    gate.release()
    end = await editor.run_end(run_id)
    assert end["status"] == "failed" and end["error"]["reason"] in ("WorkspaceNotFound", "WorkspaceMoved")
    assert not workspace.exists()
    assert not (tmp_path / "elsewhere" / "b.txt").exists()
    page = await editor.request("standfast/session/events", {"sessionId": session_id})
    assert any(event["type"] == "tool_result" and event["status"] == "error" for event in page["events"])


async def test_a_run_that_crashed_three_times_is_not_resumed_without_confirmation(home: Path, workspace: Path) -> None:
    gate = Gate()
    with FakeApi(lambda _: reply("a", "b").insert(gate, after="text_delta")) as api:
        configure(home, model={"base_url": api.url})
        session_id = run_id = ""
        for turn in range(3):
            daemon = start_daemon(home, key_of(api))
            async with open_editor(home, [workspace], env=environment(home)) as editor:
                if turn == 0:
                    session_id = await editor.create(workspace)
                    run_id = await editor.start(session_id, "go")
                else:
                    await editor.attach(session_id)
                    run_id = (await editor.request("standfast/run/resume", {"runId": run_id}))["runId"]
                await editor.event("model_request", runId=run_id)
                daemon.kill()
        gate.release()
        daemon = start_daemon(home, key_of(api))
        try:
            async with open_editor(home, [workspace]) as editor:
                await editor.attach(session_id)
                with pytest.raises(RequestFailed) as refused:
                    await editor.request("standfast/run/resume", {"runId": run_id})
                assert refused.value.reason == "RunKeepsCrashing"
                resumed = await editor.request("standfast/run/resume", {"runId": run_id, "confirm": True})
                again = await editor.request("standfast/run/resume", {"runId": run_id, "confirm": True})
                assert resumed["runId"] == again["runId"]
                assert (await editor.run_end(resumed["runId"]))["status"] == "succeeded"
        finally:
            daemon.end()


async def test_a_question_outlives_a_daemon_that_is_ended_in_order(home: Path, workspace: Path) -> None:
    with FakeApi([reply(tools=[tool("run_command", command="echo x >> out.txt")]), reply("Done.")]) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, key_of(api))
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="ask")
            await editor.start(session_id, "do it")
            await editor.wait_for(lambda: editor.asked, "the question")
            daemon.end()
        daemon = start_daemon(home, key_of(api))
        try:
            async with open_editor(home, [workspace]) as editor:
                attached = await editor.attach(session_id)
                assert attached["session"]["lastRun"]["status"] == "interrupted"
                assert len(attached["permissions"]) == 1
                editor.decide("allow")
                await editor.event("run_finished", status="succeeded")
            assert (workspace / "out.txt").read_text() == "x\n"
        finally:
            daemon.end()


@pytest.mark.requirement("R13.1")
@pytest.mark.parametrize("ending", ["cancelled", "failed"])
async def test_a_bad_end_holds_what_waited_then_and_not_what_is_queued_long_after(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi, ending: str
) -> None:
    async with open_editor(daemon.home, [workspace]) as editor:
        session_id = await editor.create(workspace)

        async def begin(text: str) -> tuple[str, Gate]:
            gate = Gate()
            fake_api.push(reply("Well, ", "well.").insert(gate, after="text_delta"))
            run_id = await editor.start(session_id, text)
            await gate.reached()
            return run_id, gate

        if ending == "cancelled":
            bad, gate = await begin("stop me")
            await editor.request("standfast/run/cancel", {"runId": bad})
            gate.release()
        else:
            fake_api.push(http_error("invalid_request_error", "no"))
            bad = await editor.start(session_id, "fail")
        assert (await editor.run_end(bad))["status"] == ending
        first, gate = await begin("first")
        fake_api.push(reply("Second."))
        second = await editor.start(session_id, "second")
        queue = await editor.request("standfast/queue/list", {"sessionId": session_id})
        assert ([item["text"] for item in queue["queue"]], queue["queueHeld"]) == (["second"], False)
        gate.release()
        await editor.run_end(first)
        assert (await editor.run_end(second))["status"] == "succeeded"

        last, gate = await begin("last")
        await editor.start(session_id, "waits")
        await editor.request("standfast/run/cancel", {"runId": last})
        gate.release()
        queue = await editor.request("standfast/queue/list", {"sessionId": session_id})
        assert ([item["text"] for item in queue["queue"]], queue["queueHeld"]) == (["waits"], True)
        ahead, gate = await begin("ahead")
        await editor.start(session_id, "waits too")
        gate.release()
        await editor.run_end(ahead)
        queue = await editor.request("standfast/queue/list", {"sessionId": session_id})
        assert ([item["text"] for item in queue["queue"]], queue["queueHeld"]) == (["waits", "waits too"], True)
