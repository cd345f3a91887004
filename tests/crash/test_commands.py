"""A command whose daemon gets kill -9: it ran once or never, the verdict and the model's next request say which, nothing stays (F3).

`sleep 3; echo x >> out` at each half second of its life: one session each, begun half a second apart, and one kill for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from crash import oracle
from crash.commands import call_of, exits, no_process_is_left, processes_under, run_what_is_said, settled
from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import Json, RequestFailed
from support import Editor, configure, open_socket, start_daemon
from support.daemon import places
from support.waiting import until

MOMENTS = 7
"""Half seconds of a command's three; the oldest ends as the youngest begins."""
HALF_S = 0.5


def out(workspace: Path, number: int) -> str:
    found = workspace / f"out{number}.txt"
    return found.read_text() if found.exists() else ""


async def _begin_and_kill(home: Path, workspace: Path, api: FakeApi) -> dict[int, oracle.Witness]:
    """Commands of every age, and the daemon dead. A witness for each."""
    seen: dict[int, oracle.Witness] = {}
    daemon = start_daemon(home, oracle.environment_of(api))
    async with open_socket(home, [workspace]) as editor:
        ids = [await editor.create(workspace) for _ in range(MOMENTS)]
        for number, session_id in enumerate(ids):
            await editor.start(session_id, f"$ sleep 3; echo x >> out{number}.txt; exit 7")
            await editor.wait_for(lambda one=session_id: editor.events(one, "tool_started"), "its start")
            seen[number] = oracle.Witness(session_id)
            await asyncio.sleep(HALF_S)  # the moment is what is tested
        daemon.kill()
        for number, session_id in enumerate(ids):
            seen[number].events = editor.events(session_id)
    return seen


@pytest.mark.requirement("R12.2")
@pytest.mark.scenario("b03")
@pytest.mark.parametrize("reattached", ["early", "late", "never in time"])
async def test_a_command_killed_at_each_half_second_ran_once_or_never_and_everybody_is_told_which(
    home: Path, workspace: Path, reattached: str
) -> None:
    with FakeApi(run_what_is_said) as api:
        grace_s = 0.3 if reattached == "never in time" else 60
        configure(home, model={"base_url": api.url}, daemon={"grace_s": grace_s})
        seen = await _begin_and_kill(home, workspace, api)
        if reattached != "early":
            await until(lambda: len(exits(home)) == MOMENTS, "every exit record")
        if reattached == "never in time":
            await no_process_is_left(workspace)
        why = {path.parent.name: json.loads(path.read_text())["why"] for path in exits(home)}
        daemon = start_daemon(home, oracle.environment_of(api))
        try:
            async with open_socket(home, [workspace]) as editor:
                for number, witness in seen.items():
                    await _tell_the_truth(editor, workspace, number, witness, api, why)
            await no_process_is_left(workspace)
        finally:
            daemon.end()
        assert not api.refused
        if reattached == "never in time":
            assert "abandoned" in why.values(), "the youngest had no chance to end by itself"
        else:
            assert all(out(workspace, number) == "x\n" for number in seen)


async def _tell_the_truth(
    editor: oracle.Editor, workspace: Path, number: int, witness: oracle.Witness, api: FakeApi, why: dict[str, str]
) -> None:
    session_id = witness.session_id or ""
    attached = await editor.attach(session_id)
    recovery = attached.get("recovery")
    if recovery is None or not recovery["calls"]:  # its result was stored before the kill
        stored = await oracle.history(editor, session_id)
        [result] = oracle.of_type(stored, "tool_result")
        assert (result["exitCode"], out(workspace, number)) == (7, "x\n")
        return
    call = call_of(attached)
    assert call["verdict"] in ("running", "finished")
    result = await settled(editor, session_id, call["callId"])
    abandoned = why.get(call["callId"]) == "abandoned"
    written = out(workspace, number)
    # one that was ended in the very moment of its end may have written; the youngest was seconds away from that
    assert written == "x\n" or (abandoned and written == "")
    assert not (abandoned and number == MOMENTS - 1 and written)
    assert result["recovered"] is True
    assert (result["status"], result["exitCode"]) == ("error", 143 if abandoned else 7)
    end = await editor.run_end(await editor.start(session_id, "go on"))
    assert end["status"] == "succeeded"
    told = api.requests[-1].whole_text
    assert "finished" in told
    assert ("none came back in time" if abandoned else "7") in told
    stored = await oracle.history(editor, session_id)
    oracle.check_log(witness, stored)
    oracle.check_calls(stored)
    oracle.check_runs(stored)
    assert out(workspace, number) == written, "it ran again"


@pytest.mark.requirement("R12.2")
@pytest.mark.scenario("a44")
async def test_a_server_that_survives_the_crash_is_shown_as_running_and_ended_on_request(
    home: Path, workspace: Path
) -> None:
    """In the foreground (its call has no result: `running`, with `stop`) and in the background (the `process` tool finds it)."""
    server = "exec sleep 298"
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            background = await editor.create(workspace)
            await editor.run_end(await editor.start(background, f"& {server}"))
            foreground = await editor.create(workspace)
            await editor.start(foreground, f"$ {server}")
            await editor.wait_for(lambda: editor.events(foreground, "tool_started"), "its start")
            await until(lambda: len(_servers(workspace)) == 2, "both servers")
            daemon.kill()
        again = start_daemon(home, oracle.environment_of(api))
        try:
            async with open_socket(home, [workspace]) as editor:
                call = call_of(await editor.attach(foreground))
                assert call["verdict"] == "running"
                [pid] = re.findall(r"process (\d+)", call["evidence"])
                assert psutil.pid_exists(int(pid)), "the process that it names is there"
                stopped = await editor.request(
                    "standfast/recovery/resolve", {"callId": call["callId"], "action": "stop"}
                )
                assert stopped["call"]["verdict"] == "finished"
                assert len(_servers(workspace)) == 1
            assert len(_servers(workspace)) == 1, "the background one stays: its call has its result"
        finally:
            again.end()
        assert not api.refused
    for pid in _servers(workspace):
        oracle.end_process(pid)
    await no_process_is_left(workspace)


def _servers(workspace: Path) -> list[int]:
    return [int(one.partition(":")[0]) for one in processes_under(workspace) if "'sleep', '298'" in one]


def git_adds(request: Request) -> Answer:
    return reply(tools=[tool("git", action="add", paths=["."])]) if request.last_text == "fix it" else reply("Done.")


def git_commits(request: Request) -> Answer:
    return (
        reply(tools=[tool("git", action="commit", message="fix")]) if request.last_text == "fix it" else reply("Done.")
    )


@pytest.mark.scenario("b05")
async def test_the_lock_of_a_git_that_died_with_the_daemon_is_offered_on_the_screen_and_removed_only_on_request(
    home: Path, workspace: Path
) -> None:
    """A real git, killed while it works with the index: a file that takes it seconds to read."""
    lock = workspace / ".git" / "index.lock"
    with (workspace / "big.bin").open("wb") as big:
        big.truncate(2 << 30)
    with FakeApi(git_adds) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await editor.start(session_id, "fix it")
            await until(lambda: lock.exists() and records(home), "git to be at work")
            record = json.loads(records(home)[0].read_text())
            daemon.kill()
            for pid in (record["supervisor"]["pid"], *_gits(workspace)):
                with contextlib.suppress(ProcessLookupError):  # git ends with its supervisor where it is confined
                    os.kill(pid, signal.SIGKILL)
        assert exits(home) == [], "nobody lived to say how it ended"
        await until(lambda: not _gits(workspace), "git to be gone")
        assert lock.exists()
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            call = call_of(await editor.attach(session_id))
            assert call["verdict"] == "not_applied"
            assert f"It left {lock} behind, which blocks every other git here" in call["evidence"]
            shown = await editor.wait_for(lambda: _of_the_lock(editor), "a diagnostic")
            place = {"textDocument": {"uri": shown["uri"]}, "range": shown["diagnostics"][0]["range"]}
            found = await editor.request("textDocument/codeAction", {**place, "context": {"diagnostics": []}})
            [action] = [one for one in found if "git lock" in one["title"]]
            assert lock.exists(), "never removed silently"
            command = (action if "command" in action else await editor.request("codeAction/resolve", action))["command"]
            assert command["arguments"][0]["action"] == "removeLock"
            run = {"command": command["command"], "arguments": command["arguments"]}
            await editor.request("workspace/executeCommand", run)
            assert not lock.exists()
            await editor.wait_for(lambda: not _names_the_lock(editor, shown["uri"]), "the diagnostic to go")
            with pytest.raises(RequestFailed, match="removeLock"):
                await editor.request("standfast/recovery/resolve", command["arguments"][0])
            assert call_of(await editor.attach(session_id))["verdict"] == "not_applied"
            assert "big.bin" not in oracle.git(workspace, "diff", "--cached", "--name-only")
        assert daemon.end() == 0


def _of_the_lock(editor: Editor) -> Json | None:
    """The last word on a document whose diagnostics name the lock."""
    told = editor.told("textDocument/publishDiagnostics")
    return next(
        (one for one in reversed(told) if any("index.lock" in each["message"] for each in one["diagnostics"])), None
    )


def _names_the_lock(editor: Editor, uri: str) -> bool:
    return any("index.lock" in each["message"] and "removeLock" in each["message"] for each in editor.diagnostics(uri))


def records(home: Path) -> list[Path]:
    return list(places(home).commands.glob("*/record.json"))


def _gits(workspace: Path) -> list[int]:
    """Living gits that work in the workspace."""
    return [int(one.partition(":")[0]) for one in processes_under(workspace) if "'git'" in one or "/git'" in one]


@pytest.mark.scenario("b06")
async def test_a_commit_whose_result_was_lost_is_told_and_not_made_again(home: Path, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 3\n")
    oracle.git(workspace, "add", "a.py")
    for name, value in (("user.name", "T"), ("user.email", "t@example.org"), ("commit.gpgsign", "false")):
        oracle.git(workspace, "config", name, value)
    with FakeApi(git_commits) as api:
        configure(home, model={"base_url": api.url})
        seen = await oracle.until_death(home, workspace, api, "before_result=kill")
        assert seen.died
        head = oracle.git(workspace, "rev-parse", "HEAD")
        daemon = start_daemon(home, oracle.environment_of(api))
        try:
            async with open_socket(home, [workspace]) as editor:
                call = call_of(await editor.attach(seen.session_id or ""))
                assert call["verdict"] == "applied"
                await editor.run_end(await editor.start(seen.session_id or "", "go on"))
            assert "applied" in api.requests[-1].whole_text
            assert oracle.git(workspace, "rev-list", "--count", "HEAD") == "2"
            assert oracle.git(workspace, "rev-parse", "HEAD") == head
        finally:
            daemon.end()
        assert not api.refused
