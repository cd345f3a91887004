"""The sandbox and the supervisor together: adoption, grace, time limits and ends hold inside (issue G, shown 4)."""

from __future__ import annotations

import sys
from pathlib import Path

from process.crash import Crash
from process.place import processes_with
from standfast.process.launch import Commands
from standfast.process.sandbox import Level
from standfast.tools.run_command import RunCommand
from support.waiting import until
from trust.conftest import confined_place

TREE = (
    f'{sys.executable} -c "import os, time; os.fork() or (os.setsid(), os.fork() or time.sleep(600))" & '
    "(trap '' TERM; touch ready; sleep 600) & touch begun; "
)


def skip_without(level: Level, tmp_path: Path) -> None:
    (tmp_path / "try").mkdir()
    confined_place(tmp_path / "try", level)


async def test_a_confined_command_outlives_its_daemon_and_is_adopted_with_its_real_end(
    tmp_path: Path, level: Level
) -> None:
    skip_without(level, tmp_path)
    crash = Crash(
        tmp_path / "crash", {"command": "touch begun; while [ ! -e on ]; do sleep 0.05; done; echo x >> out; exit 7"}
    )
    crash.environ = {"LEVEL": level, "HOME": str(tmp_path)}
    await crash.begin()
    await until((crash.workspace / "begun").exists, "the command to begin")
    await crash.kill()
    tool = RunCommand(Commands())
    assert (await tool.verify(crash.call, crash.context)).verdict == "running"
    (crash.workspace / "on").touch()
    found = await tool.wait(crash.call, crash.context)
    assert (found.verdict, found.outcome and found.outcome.exit_code) == ("finished", 7)
    assert (crash.workspace / "out").read_text() == "x\n"
    await until(lambda: not processes_with(crash.mark), "no process to be left")
    assert not (crash.workspace / ".vscode").exists()


async def test_a_confined_command_that_nobody_adopts_is_ended_whole(tmp_path: Path, level: Level) -> None:
    skip_without(level, tmp_path)
    crash = Crash(tmp_path / "crash", {"command": f"{TREE} wait"}, grace_ms=200)
    crash.environ = {"LEVEL": level, "HOME": str(tmp_path)}
    await crash.begin()
    await until((crash.workspace / "ready").exists, "the tree to stand")
    await crash.kill()
    await crash.ended()
    await until(lambda: not processes_with(crash.mark), "no process to be left")
    found = await RunCommand(Commands()).verify(crash.call, crash.context)
    assert found.outcome is not None
    assert found.outcome.reason == "Abandoned"


async def test_a_time_limit_ends_all_of_a_confined_command(tmp_path: Path, level: Level) -> None:
    place = confined_place(tmp_path, level)
    outcome = await place.call(RunCommand(place.commands), command=f"{TREE} wait", timeout_s=1.0)
    assert outcome.reason == "TimedOut"
    await until(lambda: not processes_with(place.mark), "no process to be left")
    assert len(place.commands) == 0


async def test_a_confined_command_keeps_its_exit_code_its_output_and_its_umask(tmp_path: Path, level: Level) -> None:
    place = confined_place(tmp_path, level)
    place.commands.umask = 0o027
    outcome = await place.call(RunCommand(place.commands), command="touch made; echo out; echo err >&2; exit 5")
    assert (outcome.exit_code, outcome.content.splitlines()[:2]) == (5, ["out", "err"])
    assert (place.workspace / "made").stat().st_mode & 0o777 == 0o640
    killed = await place.call(RunCommand(place.commands), command="kill -9 $$")
    assert killed.exit_code == 137


async def test_a_sandbox_that_cannot_be_set_up_runs_nothing_and_is_not_left_out(tmp_path: Path) -> None:
    """`bwrap` breaks after the daemon found it working: the command does not run, neither inside nor outside."""
    place = confined_place(tmp_path, "full")
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: Creating new namespace failed' >&2\nexit 1\n")
    broken.chmod(0o755)
    place.commands.sandbox = place.commands.sandbox._replace(program=str(broken))
    outcome = await place.call(RunCommand(place.commands), command="touch ran")
    assert (outcome.status, outcome.reason) == ("error", "SandboxFailed")
    assert "not tried without" in outcome.content
    assert not (place.workspace / "ran").exists()


async def test_private_temporary_files_are_gone_with_the_command(tmp_path: Path, level: Level) -> None:
    place = confined_place(tmp_path, level)
    outcome = await place.call(RunCommand(place.commands), command="mktemp -d; touch $TMPDIR/kept; ls $TMPDIR")
    made = Path(outcome.content.splitlines()[0])
    assert "kept" in outcome.content
    assert not made.exists()
    assert not (place.spool / "call_1/tmp").exists()
