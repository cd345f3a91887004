"""`run_command` through its own door: what it shows, what it runs with, how it ends."""

from __future__ import annotations

import asyncio

import pytest

from process.place import Place, processes_with
from standfast.tools.base import Outcome, Plan
from standfast.tools.run_command import RunCommand
from support.waiting import until


@pytest.fixture
def tool(place: Place) -> RunCommand:
    return RunCommand(place.commands)


async def test_a_command_gives_its_output_and_its_exit_code(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="echo out; echo err >&2; exit 3")
    assert (outcome.status, outcome.exit_code) == ("error", 3)
    assert outcome.content.startswith("out\nerr\n[exit code 3")
    assert "".join(place.shown) == "out\nerr\n"


async def test_a_command_that_succeeds_is_ok(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="pwd")
    assert (outcome.status, outcome.exit_code) == ("ok", 0)
    assert outcome.content.startswith(f"{place.workspace}\n")


async def test_a_command_ended_by_a_signal_has_128_plus_the_signal(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="kill -9 $$")
    assert (outcome.status, outcome.exit_code) == ("error", 137)


@pytest.mark.scenario("ATK-37")
@pytest.mark.scenario("ATK-32")
async def test_no_credential_and_no_start_up_file_reaches_a_command(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(
        tool, command="env; cat /proc/$PPID/environ | tr '\\0' '\\n'; ls /proc/self/fd | tr '\\n' ' '"
    )
    assert "canary" not in outcome.content
    assert f"STANDFAST_OPERATION_ID={place.mark}" in outcome.content
    assert "TERM=dumb" in outcome.content
    assert "0 1 2 3 \n" in outcome.content, "only 0, 1, 2 (3 is the listing's own)"


async def test_the_permission_shows_what_is_hidden_in_the_command(place: Place, tool: RunCommand) -> None:
    plan = await tool.plan(tool.Args.model_validate({"command": "echo a\u202eb\x1b[2K\nrm x\u200b"}), place.context())
    assert isinstance(plan, Plan)
    assert plan.summary == "Run: echo a<U+202E>b<U+001B>[2K⏎rm x<U+200B>"


async def test_two_plans_have_one_digest_only_if_they_do_the_same(place: Place, tool: RunCommand) -> None:
    (place.workspace / "sub").mkdir()
    variants = [
        {"command": "make"},
        {"command": "make "},
        {"command": "make", "cwd": "sub"},
        {"command": "make", "timeout_s": 5},
        {"command": "make", "background": True},
    ]
    plans = [await tool.plan(tool.Args.model_validate(args), place.context()) for args in variants * 2]
    assert all(isinstance(plan, Plan) for plan in plans)
    assert len({plan.digest for plan in plans if isinstance(plan, Plan)}) == len(variants)


@pytest.mark.parametrize("cwd", ["..", "/", "nowhere", "link"])
async def test_a_directory_outside_the_workspace_is_refused(place: Place, tool: RunCommand, cwd: str) -> None:
    (place.workspace / "link").symlink_to("/tmp")
    outcome = await tool.plan(tool.Args.model_validate({"command": "ls", "cwd": cwd}), place.context())
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.reason) == ("error", "BadDirectory")


@pytest.mark.scenario("ATK-57")
async def test_a_time_limit_ends_the_whole_tree_even_where_it_ignores_sigterm(place: Place, tool: RunCommand) -> None:
    stubborn = "trap '' TERM; (trap '' TERM; setsid sleep 300) & (setsid sh -c 'sleep 301 & sleep 302' &) ; sleep 303"
    outcome = await place.call(tool, command=stubborn, timeout_s=0.5)
    assert outcome.status == "error"
    assert outcome.reason == "TimedOut"
    assert outcome.exit_code in (137, 143)
    assert not processes_with(place.mark)


@pytest.mark.scenario("b01")
@pytest.mark.scenario("b15")
async def test_a_cancel_ends_the_tree_and_says_that_the_command_was_started(place: Place, tool: RunCommand) -> None:
    command = (
        '(sleep 3; echo late > late.txt) & (setsid sh -c "sleep 4; echo late > late.txt" &) ; echo up; touch done; wait'
    )
    call = asyncio.ensure_future(place.call(tool, command=command))
    await until((place.workspace / "done").exists, "the command to begin")
    call.cancel()
    outcome = await call
    assert outcome.status == "cancelled"
    assert "was started and was killed after" in outcome.content
    assert outcome.content.startswith("up\n")
    assert not processes_with(place.mark)
    assert not (place.workspace / "late.txt").exists()


async def test_processes_left_behind_are_ended_and_it_says_so(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="nohup setsid sleep 300 >/dev/null 2>&1 & echo started")
    assert outcome.status == "ok"
    assert "1 of its processes were still there" in outcome.content
    assert not processes_with(place.mark)


@pytest.mark.scenario("ATK-57")
async def test_a_process_that_forks_itself_away_and_ignores_sigterm_does_not_escape(
    place: Place, tool: RunCommand
) -> None:
    """It has a new pid, session and parent every millisecond (and ends by itself after 30 s, should it escape)."""
    hopper = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "end = time.monotonic() + 30\n"
        "while time.monotonic() < end:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid(); time.sleep(0.001)\n"
    )
    (place.workspace / "hopper.py").write_text(hopper)
    outcome = await place.call(tool, command="python3 hopper.py; echo started")
    assert outcome.status == "ok"
    assert "of its processes were still there when it ended, and were ended too" in outcome.content
    assert not processes_with(place.mark)


async def test_a_call_that_was_judged_before_is_not_started_any_more(place: Place, tool: RunCommand) -> None:
    ctx = place.context()
    args = tool.Args.model_validate({"command": "touch made"})
    plan = await tool.plan(args, ctx)
    assert isinstance(plan, Plan)
    assert (await tool.verify(place.started(ctx, plan, {}), ctx)).verdict == "not_applied"
    outcome = await tool.run(args, plan, ctx)
    assert (outcome.status, outcome.reason) == ("error", "CommandNotStarted")
    assert not (place.workspace / "made").exists()


async def test_a_call_cancelled_before_its_command_begins_says_that_nothing_ran(place: Place, tool: RunCommand) -> None:
    call = asyncio.ensure_future(place.call(tool, command="touch made"))
    await until(place.spool.exists, "the launch to begin")
    call.cancel()
    outcome = await call
    assert outcome.status == "cancelled"
    assert ("Nothing of it ran" in outcome.content) == (not (place.workspace / "made").exists())


async def test_a_directory_that_vanished_after_the_plan_is_said(place: Place, tool: RunCommand) -> None:
    (place.workspace / "sub").mkdir()
    args = tool.Args.model_validate({"command": "true", "cwd": "sub"})
    ctx = place.context()
    plan = await tool.plan(args, ctx)
    assert isinstance(plan, Plan)
    (place.workspace / "sub").rmdir()
    outcome = await tool.run(args, plan, ctx)
    assert (outcome.status, outcome.exit_code) == ("error", 127)
    assert outcome.content.startswith("The command could not be started: ")
