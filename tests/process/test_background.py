"""Background commands: looked after by the `process` tool, also across daemons (a44, R12.2)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from process.crash import Crash
from process.place import Place, processes_with
from standfast.errors import NotAvailable
from standfast.process.launch import Commands
from standfast.tools.base import Outcome, Plan
from standfast.tools.process_tool import ProcessTool
from standfast.tools.run_command import RunCommand
from support.waiting import until

SERVER = f"exec {sys.executable} -u -c \"import socket,time; s=socket.create_server(('127.0.0.1', 0)); print('up'); time.sleep(300)\""


@pytest.fixture
def run(place: Place) -> RunCommand:
    return RunCommand(place.commands)


@pytest.fixture
def tool(place: Place) -> ProcessTool:
    return ProcessTool(place.commands)


async def polled(place: Place, tool: ProcessTool, process_id: str, until_text: str) -> str:
    """Poll until a text has come; all that came."""
    seen = ""
    async with asyncio.timeout(30):
        while until_text not in seen:
            seen += (await place.call(tool, action="poll", process_id=process_id)).content
    return seen


async def test_a_server_is_started_seen_listening_and_stopped(place: Place, run: RunCommand, tool: ProcessTool) -> None:
    started = await place.call(run, command=SERVER, background=True)
    assert started.status == "ok"
    assert "process_id call_1, pid " in started.content
    await polled(place, tool, "call_1", "up")
    listed = await place.call(tool, action="list")
    assert re.search(r"running, pid \d+, listens on 127\.0\.0\.1:\d+$", listed.content)
    stopped = await place.call(tool, action="stop", process_id="call_1")
    assert (stopped.status, stopped.exit_code) == ("ok", 143)
    assert not processes_with(place.mark)
    after = await place.call(tool, action="poll", process_id="call_1")
    assert "[ended, pid" in after.content
    assert "stopped]" in after.content
    assert len(place.commands) == 0


async def test_input_reaches_a_background_command_and_only_new_output_is_polled(
    place: Place, run: RunCommand, tool: ProcessTool
) -> None:
    await place.call(run, command='while read line; do echo "got $line"; done; exit 5', background=True)
    for word in ("one", "two"):
        assert (await place.call(tool, action="write", process_id="call_1", input=f"{word}\n")).status == "ok"
        seen = await polled(place, tool, "call_1", f"got {word}\n")
        assert word == "one" or "got one" not in seen
    assert "(no new output)" in (await place.call(tool, action="poll", process_id="call_1")).content
    await place.call(tool, action="stop", process_id="call_1")
    late = await place.call(tool, action="write", process_id="call_1", input="x")
    assert (late.status, late.reason) == ("error", "ProcessEnded")


async def test_a_background_command_that_ends_tells_its_exit_code(
    place: Place, run: RunCommand, tool: ProcessTool
) -> None:
    await place.call(run, command="echo bye; exit 4", background=True)
    await place.commands.wait(place.spool / "call_1")
    answer = await place.call(tool, action="poll", process_id="call_1")
    assert answer.content.startswith("bye\n[ended")
    assert answer.exit_code == 4


async def test_more_output_than_one_answer_holds_gives_the_newest(
    place: Place, run: RunCommand, tool: ProcessTool
) -> None:
    await place.call(run, command="yes ä | head -n 100000; echo END", background=True)
    await place.commands.wait(place.spool / "call_1")
    answer = (await place.call(tool, action="poll", process_id="call_1")).content
    assert len(answer) < 26_000
    assert "bytes of older output left out" in answer
    assert "END\n[ended" in answer
    assert "\ufffd" not in answer


@pytest.mark.parametrize("process_id", ["call_9", "../call_1", "/etc", "", None])
async def test_a_process_that_is_not_the_sessions_own_is_not_found(
    place: Place, run: RunCommand, tool: ProcessTool, process_id: str | None
) -> None:
    await place.call(run, command="true")  # in the foreground: call_1 is no background process
    for action in ("poll", "stop"):
        outcome = await place.call(tool, action=action, process_id=process_id)
        assert (outcome.status, outcome.reason) == ("error", "ProcessNotFound")
    assert (await place.call(tool, action="poll", process_id="call_1")).reason == "ProcessNotFound"


async def test_reading_is_free_and_acting_is_asked(place: Place, run: RunCommand, tool: ProcessTool) -> None:
    await place.call(run, command="cat", background=True)
    ctx = place.context()
    effects: dict[str, str] = {}
    for args in ({"action": "list"}, {"action": "poll"}, {"action": "write", "input": "a\x1b"}, {"action": "stop"}):
        plan = await tool.plan(tool.Args.model_validate({"process_id": "call_1", **args}), ctx)
        assert isinstance(plan, Plan)
        effects[args["action"]] = plan.effect
        assert "\x1b" not in plan.summary
    assert effects == {"list": "read", "poll": "read", "write": "command", "stop": "command"}
    await place.call(tool, action="stop", process_id="call_1")


@pytest.mark.scenario("a44")
async def test_the_next_daemon_adopts_a_server_and_knows_its_port_and_output(tmp_path: Path) -> None:
    crash = Crash(tmp_path, {"command": SERVER, "background": True}, grace_ms=20_000)
    await crash.begin()
    await crash.recorded()
    await crash.kill()
    commands = Commands()
    adopted = await commands.adopt_all(tmp_path / "spool")
    assert [record.call_id for record in adopted] == ["call_1"]
    assert len(commands) == 1
    tool = ProcessTool(commands)
    plan = await tool.plan(tool.Args.model_validate({"action": "poll", "process_id": "call_1"}), crash.context)
    assert isinstance(plan, Plan)
    seen = ""
    async with asyncio.timeout(30):
        while "up\n" not in seen or "listens on 127.0.0.1:" not in seen:
            seen += (await tool.run(tool.Args.model_validate({"action": "poll"}), plan, crash.context)).content
    state = await commands.stop(crash.directory)
    assert state.exit is not None
    assert state.exit.why == "stopped"
    assert not processes_with(crash.mark)


async def test_an_adopted_command_is_not_ended_by_the_grace_time_of_its_dead_daemon(tmp_path: Path) -> None:
    crash = Crash(tmp_path, {"command": "sleep 4; exit 3", "background": True}, grace_ms=3_000)
    await crash.begin()
    await crash.recorded()
    await crash.kill()
    commands = Commands()
    assert await commands.adopt_all(tmp_path / "spool")
    state = await commands.wait(crash.directory)
    assert state.exit is not None
    assert (state.exit.why, state.exit.exit_code) == ("exited", 3)


async def test_daemon_after_daemon_can_adopt_and_when_the_last_goes_the_grace_time_begins_again(tmp_path: Path) -> None:
    crash = Crash(tmp_path, {"command": "sleep 300", "background": True}, grace_ms=2_000)
    await crash.begin()
    await crash.recorded()
    await crash.kill()
    for _ in range(5):
        commands = Commands()
        assert len(await commands.adopt_all(tmp_path / "spool")) == 1
        commands.close()
    await crash.ended()
    assert json.loads((crash.directory / "exit.json").read_text())["why"] == "abandoned"
    await until(lambda: not processes_with(crash.mark), "no process to be left")


async def test_a_frozen_daemon_is_still_a_daemon(tmp_path: Path) -> None:
    """F19: SIGSTOP for much longer than the grace time."""
    crash = Crash(tmp_path, {"command": "sleep 1; exit 3"}, grace_ms=100)
    await crash.begin()
    await crash.recorded()
    crash.daemon.send_signal(signal.SIGSTOP)
    await crash.ended()
    crash.daemon.send_signal(signal.SIGCONT)
    await crash.gone()
    assert json.loads((crash.directory / "exit.json").read_text())["why"] == "exited"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
async def test_a_closing_terminal_does_not_end_the_supervisor(
    place: Place, run: RunCommand, number: signal.Signals
) -> None:
    await place.call(run, command="trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done", background=True)
    await until(lambda: (place.spool / "call_1" / "output").read_bytes() == b"ready\n", "the trap to be set")
    record = json.loads((place.spool / "call_1" / "record.json").read_text())
    os.kill(record["supervisor"]["pid"], number)
    os.kill(record["pid"], signal.SIGUSR1)
    state = await place.commands.wait(place.spool / "call_1")
    assert state.exit is not None
    assert (state.exit.why, state.exit.exit_code) == ("exited", 9)


async def test_ending_the_supervisor_ends_its_command(place: Place, run: RunCommand) -> None:
    await place.call(run, command="setsid sleep 300 & sleep 301", background=True)
    record = json.loads((place.spool / "call_1" / "record.json").read_text())
    os.kill(record["supervisor"]["pid"], signal.SIGTERM)
    state = await place.commands.wait(place.spool / "call_1")
    assert state.exit is not None
    assert state.exit.why == "stopped"


async def test_the_record_directory_is_the_users_alone(place: Place, run: RunCommand) -> None:
    await place.call(run, command="umask; touch made", background=False)
    directory = place.spool / "call_1"
    assert oct(directory.stat().st_mode)[-3:] == "700"
    assert {oct(path.stat().st_mode)[-3:] for path in directory.iterdir()} == {"600"}
    assert sorted(path.name for path in directory.iterdir()) == [
        *("claim", "control", "exit.json", "output", "record.json", "spec.json"),
    ]
    assert oct((place.workspace / "made").stat().st_mode)[-3:] == "644"


@pytest.mark.parametrize(("action", "verdict"), [("stop", "not_applied"), ("write", "unknown")])
async def test_an_interrupted_stop_or_write_is_verified_by_what_can_be_seen(
    place: Place, run: RunCommand, tool: ProcessTool, action: str, verdict: str
) -> None:
    await place.call(run, command="cat", background=True)
    ctx = place.context()
    args = {"action": action, "process_id": "call_1", "input": "x\n"}
    plan = await tool.plan(tool.Args.model_validate(args), ctx)
    assert not isinstance(plan, Outcome)
    call = place.started(ctx, plan, args)
    assert (await tool.verify(call, ctx)).verdict == verdict
    if action == "write":
        with pytest.raises(NotAvailable):
            await tool.settle("complete", call, ctx)
        await place.call(tool, action="stop", process_id="call_1")
    else:
        assert (await tool.settle("complete", call, ctx)).verdict == "applied"
        assert (await tool.verify(call, ctx)).verdict == "applied"


async def test_only_records_of_ended_and_settled_calls_are_swept(place: Place, run: RunCommand) -> None:
    await place.call(run, command="true")
    await place.call(run, command="true")
    await place.call(run, command="sleep 300", background=True)
    end_of_time = 2**60

    async def settled(call_id: str) -> bool:
        return call_id != "call_2"

    assert await place.commands.sweep(place.spool, before_ms=0, settled=settled) == 0
    assert await place.commands.sweep(place.spool, before_ms=end_of_time, settled=settled) == 1
    assert sorted(path.name for path in place.spool.iterdir()) == ["call_2", "call_3"]
    await place.commands.stop(place.spool / "call_3")
