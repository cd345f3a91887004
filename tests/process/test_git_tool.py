"""`git` on real repositories: what it may start, what it checks, what it says after a crash (issue C part 2)."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from process.crash import Crash
from process.place import Place, processes_with
from standfast.errors import NotAvailable
from standfast.process.launch import Commands
from standfast.tools.base import Outcome, Plan, StartedCall, ToolContext
from standfast.tools.git_tool import GitTool
from standfast.tools.run_command import RunCommand
from support.waiting import until

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def sh(folder: Path, *words: str) -> str:
    """The person's own git."""
    run = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **IDENTITY}, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def repository(folder: Path) -> Path:
    """One commit with a.txt; a change to it is not staged."""
    folder.mkdir(parents=True, exist_ok=True)
    sh(folder, "init", "-q", "-b", "main")
    sh(folder, "config", "user.name", "Ann")
    sh(folder, "config", "user.email", "ann@example.org")
    (folder / "a.txt").write_text("one\n")
    sh(folder, "add", "a.txt")
    sh(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("two\n")
    return folder


@pytest.fixture
def tool(place: Place) -> GitTool:
    repository(place.workspace)
    return GitTool(place.commands)


async def plan_of(tool: GitTool, place: Place, **args: object) -> tuple[Plan, ToolContext, StartedCall]:
    ctx = place.context()
    plan = await tool.plan(tool.Args.model_validate(args), ctx)
    assert isinstance(plan, Plan), plan
    return plan, ctx, place.started(ctx, plan, args)


async def test_a_change_is_added_and_committed_with_nothing_else_in_its_message(place: Place, tool: GitTool) -> None:
    assert (await place.call(tool, action="status")).content.startswith("## main\n M a.txt\n")
    assert "+two" in (await place.call(tool, action="diff")).content
    assert (await place.call(tool, action="add", paths=["a.txt"])).status == "ok"
    assert (await place.call(tool, action="commit", message="second\n\nwhy")).status == "ok"
    assert sh(place.workspace, "log", "-1", "--format=%B") == "second\n\nwhy"
    assert sh(place.workspace, "log", "-1", "--format=%P") == sh(place.workspace, "rev-parse", "HEAD~1")
    log = (await place.call(tool, action="log", limit=1)).content
    assert "Ann: second" in log
    assert "first" not in log


async def test_a_branch_is_made_here_and_listed(place: Place, tool: GitTool) -> None:
    assert (await place.call(tool, action="branch", name="topic/x")).status == "ok"
    assert "* topic/x" in (await place.call(tool, action="branch")).content
    assert (place.workspace / "a.txt").read_text() == "two\n"


async def test_restore_asks_with_a_risk_and_throws_the_shown_change_away(place: Place, tool: GitTool) -> None:
    plan, ctx, _ = await plan_of(tool, place, action="restore", paths=["a.txt"])
    assert plan.risks == ("Throws away changes that are in no commit. It cannot be undone.",)
    assert (
        await tool.run(tool.Args.model_validate({"action": "restore", "paths": ["a.txt"]}), plan, ctx)
    ).status == "ok"
    assert (place.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.requirement("R12.1")
@pytest.mark.parametrize(
    ("args", "move"),
    [
        ({"action": "commit", "message": "mine"}, ["commit", "-q", "--allow-empty", "-m", "theirs"]),
        ({"action": "commit", "message": "mine"}, ["switch", "-q", "-c", "other"]),
        ({"action": "commit", "message": "mine"}, ["rm", "-q", "--cached", "a.txt"]),
        ({"action": "restore", "paths": ["a.txt"]}, ["add", "a.txt"]),
    ],
)
async def test_a_repository_that_moved_since_the_plan_is_refused(
    place: Place, tool: GitTool, args: dict[str, Any], move: list[str]
) -> None:
    plan, ctx, _ = await plan_of(tool, place, **args)
    sh(place.workspace, *move)
    head = sh(place.workspace, "rev-parse", "HEAD")
    outcome = await tool.run(tool.Args.model_validate(args), plan, ctx)
    assert (outcome.status, outcome.reason) == ("error", "GIT_CHANGED")
    assert sh(place.workspace, "rev-parse", "HEAD") == head
    assert (place.workspace / "a.txt").read_text() == "two\n"


async def test_two_plans_of_one_call_have_one_digest_until_the_index_moves(place: Place, tool: GitTool) -> None:
    first, _, _ = await plan_of(tool, place, action="commit", message="m")
    second, _, _ = await plan_of(tool, place, action="commit", message="m")
    sh(place.workspace, "add", "a.txt")
    third, _, _ = await plan_of(tool, place, action="commit", message="m")
    assert first.digest == second.digest != third.digest


async def test_planning_and_reading_touch_nothing_in_the_repository(place: Place, tool: GitTool) -> None:
    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in (place.workspace / ".git").rglob("*")}

    os.utime(place.workspace / "a.txt")
    before = state()
    for args in ({"action": "status"}, {"action": "diff"}, {"action": "log"}, {"action": "branch"}):
        assert (await place.call(tool, **args)).status == "ok"
    for args in ({"action": "add", "paths": ["."]}, {"action": "commit", "message": "m"}):
        await plan_of(tool, place, **args)
    assert state() == before


@pytest.mark.scenario("ATK-21")
@pytest.mark.parametrize("trusted", [False, True])
async def test_nothing_of_the_repository_runs_without_trust(place: Place, tool: GitTool, *, trusted: bool) -> None:
    folder = place.workspace
    trap = folder.parent / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {folder.parent}/sprung\ncat\nexit 0\n')
    trap.chmod(0o755)
    for hook in ("pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction"):
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / hook).symlink_to(trap)
    for key, value in {
        "filter.a=b.clean": str(trap),
        "filter.a=b.smudge": str(trap),
        "filter.a=b.required": "true",
        "core.fsmonitor": str(trap),
        "diff.external": str(trap),
        "diff.z.textconv": str(trap),
        "diff.z.command": str(trap),
        "gpg.program": str(trap),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "core.sshCommand": str(trap),
    }.items():
        sh(folder, "config", key, value)
    if not trusted:
        sh(folder, "config", "commit.gpgSign", "true")
        sh(folder, "config", "log.showSignature", "true")
    (folder / ".gitattributes").write_text("* filter=a=b diff=z\n")
    sprung = folder.parent / "sprung"
    for args in (
        {"action": "status"},
        {"action": "diff"},
        {"action": "add", "paths": ["."]},
        {"action": "diff", "staged": True},
        {"action": "commit", "message": "m"},
        {"action": "log"},
        {"action": "branch", "name": "b"},
        {"action": "restore", "paths": ["."]},
    ):
        outcome = await place.call(tool, place.context(trusted=trusted), **args)
        assert trusted or outcome.status == "ok", outcome.content
    assert sprung.exists() == trusted, sprung.read_text() if sprung.exists() else "nothing ran"


async def test_filters_that_are_off_are_told_before_files_are_added_without_them(place: Place, tool: GitTool) -> None:
    sh(place.workspace, "config", "filter.large.clean", "true")
    plan, _, _ = await plan_of(tool, place, action="add", paths=["a.txt"])
    assert plan.risks == (
        "The repository's own filters (large) do not run: files are taken as they are. Trust the folder to run them.",
    )


@pytest.mark.parametrize(
    "args",
    [
        {"action": "add", "paths": ["../x"]},
        {"action": "add", "paths": ["/etc/passwd"]},
        {"action": "add", "paths": [".git/config"]},
        {"action": "add"},
        {"action": "commit", "message": " "},
        {"action": "commit", "message": "m", "paths": ["a.txt"]},
        {"action": "diff", "ref": "--output=x"},
        {"action": "log", "ref": "-p"},
        {"action": "branch", "name": "--force"},
    ],
)
async def test_words_that_are_options_or_lead_out_are_refused(
    place: Place, tool: GitTool, args: dict[str, Any]
) -> None:
    outcome = await tool.plan(tool.Args.model_validate(args), place.context())
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.reason) == ("error", "BadArguments")


async def test_a_folder_without_repository_and_one_that_points_elsewhere_are_refused(place: Place) -> None:
    tool = GitTool(place.commands)
    outcome = await place.call(tool, action="status")
    assert (outcome.status, outcome.reason) == ("error", "GitFailed")
    repository(place.workspace)
    sh(place.workspace, "config", "core.worktree", "/usr")
    outcome = await place.call(tool, action="add", paths=["a.txt"])
    assert (outcome.status, outcome.reason) == ("error", "GitFailed")


# -- after a crash ----------------------------------------------------------------------------------------------------


def crash_of(base: Path, args: dict[str, object], **more: Any) -> Crash:
    crash = Crash(base, args, tool="git", environ={"GIT_CONFIG_GLOBAL": "/dev/null"}, **more)
    repository(crash.workspace)
    return crash


@pytest.mark.scenario("b06")
async def test_a_commit_whose_result_was_lost_is_found_and_not_made_again(tmp_path: Path) -> None:
    crash = crash_of(tmp_path, {"action": "commit", "message": "fix"})
    sh(crash.workspace, "add", "a.txt")
    await crash.begin()
    await crash.recorded()
    await crash.kill()
    await crash.ended()
    found = await GitTool(Commands()).verify(crash.call, crash.context)
    assert found.verdict == "applied"
    assert found.outcome is not None
    assert found.outcome.status == "ok"
    assert sh(crash.workspace, "rev-list", "--count", "HEAD") == "2"
    sh(crash.workspace, "commit", "-q", "--allow-empty", "-m", "and then the person's")
    assert (await GitTool(Commands()).verify(crash.call, crash.context)).verdict == "applied"


@pytest.mark.scenario("b06")
async def test_a_commit_of_a_shell_command_is_finished_with_its_real_result(tmp_path: Path) -> None:
    crash = Crash(tmp_path, {"command": "git commit -qm fix && git rev-parse HEAD"})
    repository(crash.workspace)
    sh(crash.workspace, "add", "a.txt")
    await crash.begin()
    await crash.recorded()
    await crash.kill()
    found = await RunCommand(Commands()).wait(crash.call, crash.context)
    assert found.verdict == "finished"
    assert found.outcome is not None
    assert sh(crash.workspace, "rev-parse", "HEAD") in found.outcome.content


@pytest.mark.parametrize(
    "args",
    [
        {"action": "commit", "message": "fix"},
        {"action": "add", "paths": ["."]},
        {"action": "restore", "paths": ["."]},
        {"action": "branch", "name": "topic"},
    ],
)
async def test_a_call_that_did_not_reach_git_is_not_applied_and_never_will(
    tmp_path: Path, args: dict[str, Any]
) -> None:
    crash = crash_of(tmp_path, args, failpoints="in_spawn_before=kill")
    await crash.begin()
    await crash.gone()
    found = await GitTool(Commands()).verify(crash.call, crash.context)
    assert found.verdict == "not_applied"
    assert sh(crash.workspace, "status", "--porcelain", "--branch") == "## main\n M a.txt"


@pytest.mark.parametrize(
    ("args", "by_hand"),
    [
        ({"action": "commit", "message": "fix"}, ["commit", "-q", "-m", "fix"]),
        ({"action": "add", "paths": ["."]}, ["add", "."]),
        ({"action": "restore", "paths": ["."]}, ["restore", "."]),
        ({"action": "restore", "paths": ["."], "staged": True}, ["restore", "--staged", "."]),
        ({"action": "branch", "name": "topic"}, ["switch", "-q", "-c", "topic"]),
    ],
)
async def test_without_an_exit_record_the_repository_tells(
    place: Place, tool: GitTool, args: dict[str, Any], by_hand: list[str]
) -> None:
    """The record of a git that began and vanished: its effect is what the repository shows."""
    if args["action"] == "commit" or args.get("staged"):
        sh(place.workspace, "add", "a.txt")
    plan, ctx, call = await plan_of(tool, place, **args)
    lost_record(place, ctx)
    assert (await tool.verify(call, ctx)).verdict == "not_applied"
    sh(place.workspace, *by_hand)
    found = await tool.verify(call, ctx)
    assert found.verdict == "applied"
    assert found.outcome is not None
    assert found.outcome.status == "ok"
    assert plan.effect == "command"


async def test_a_head_that_somebody_else_moved_is_unknown(place: Place, tool: GitTool) -> None:
    _, ctx, call = await plan_of(tool, place, action="commit", message="m")
    lost_record(place, ctx)
    sh(place.workspace, "commit", "-q", "-am", "theirs")
    assert (await tool.verify(call, ctx)).verdict == "unknown"


def lost_record(place: Place, ctx: ToolContext) -> None:
    """A command that began, of which nothing is left but its record."""
    import json
    import time

    directory = place.spool / ctx.call_id
    directory.mkdir(parents=True)
    gone = {"pid": 2**22 - 1, "startTime": 1}
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    record = {
        "version": 1,
        **gone,
        "bootId": boot,
        "supervisor": gone,
        "command": "git",
        "cwd": str(place.workspace),
        "callId": ctx.call_id,
        "sessionId": "ses_1",
        "operationId": ctx.operation_id,
        "background": False,
        "startedAtMs": time.time_ns() // 1_000_000,
    }
    (directory / "record.json").write_text(json.dumps(record))


@pytest.mark.scenario("b05")
async def test_a_lock_that_our_dead_git_left_is_offered_and_removed_on_request(place: Place, tool: GitTool) -> None:
    _, ctx, call = await plan_of(tool, place, action="add", paths=["."])
    lost_record(place, ctx)
    lock = place.workspace / ".git" / "index.lock"
    lock.touch()
    found = await tool.verify(call, ctx)
    assert found.verdict == "not_applied"
    assert f"It left {lock} behind" in found.evidence
    assert lock.exists(), "never removed silently"
    settled = await tool.settle("removeLock", call, ctx)
    assert settled.verdict == "not_applied", "what became of the call is known as before"
    assert not lock.exists()
    with pytest.raises(NotAvailable):
        await tool.settle("removeLock", call, ctx)


@pytest.mark.scenario("b05")
@pytest.mark.parametrize("whose", ["older", "open", "git at work"])
async def test_a_lock_of_somebody_else_is_not_offered_and_not_touched(place: Place, tool: GitTool, whose: str) -> None:
    _, ctx, call = await plan_of(tool, place, action="add", paths=["."])
    lost_record(place, ctx)
    lock = place.workspace / ".git" / "index.lock"
    handle = lock.open("w")
    git = None
    if whose != "open":
        handle.close()
    if whose == "older":
        os.utime(lock, (1_000_000_000, 1_000_000_000))
    if whose == "git at work":
        git = await asyncio.create_subprocess_exec(
            "git", "cat-file", "--batch", cwd=place.workspace, stdin=asyncio.subprocess.PIPE
        )
    try:
        assert "index.lock" not in (await tool.verify(call, ctx)).evidence
        with pytest.raises(NotAvailable):
            await tool.settle("removeLock", call, ctx)
        assert lock.exists()
    finally:
        handle.close()
        if git is not None and git.stdin is not None:
            git.stdin.close()
            await git.wait()


@pytest.mark.scenario("b05")
async def test_a_shell_command_whose_git_was_killed_offers_its_lock_too(tmp_path: Path) -> None:
    crash = Crash(tmp_path, {"command": "touch .git/index.lock; sleep 300"}, grace_ms=100)
    repository(crash.workspace)
    await crash.begin()
    await until((crash.workspace / ".git" / "index.lock").exists, "the lock")
    await crash.kill()
    await crash.ended()
    tool = RunCommand(Commands())
    assert "`removeLock` removes it" in (await tool.verify(crash.call, crash.context)).evidence
    assert (await tool.settle("removeLock", crash.call, crash.context)).verdict == "finished"
    await until(lambda: not processes_with(crash.mark), "no process left")
