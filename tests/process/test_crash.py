"""The daemon is killed while a command runs: the next one tells the truth, nothing runs twice, nothing stays (F3)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from pathlib import Path

import pytest

from process.crash import Crash
from process.place import Place, processes_with
from standfast.errors import NotAvailable
from standfast.process.environment import command_environment
from standfast.process.identity import Identity, alive, identify
from standfast.process.judge import judge
from standfast.process.launch import Commands
from standfast.process.record import Spec
from standfast.tools.run_command import RunCommand
from support.waiting import until

SLOW = {"command": "sleep 3; echo x >> out.txt; exit 7"}
MOMENTS_S = [0.5 * step for step in range(8)]


def lines(crash: Crash) -> list[str]:
    out = crash.workspace / "out.txt"
    return out.read_text().splitlines() if out.exists() else []


async def killed_after(crash: Crash, moment_s: float) -> Crash:
    """Kill at a moment of the command's own time."""
    await crash.begin()
    await crash.recorded()
    await asyncio.sleep(moment_s)  # the moment is what is tested
    await crash.kill()
    return crash


async def test_a_command_whose_daemon_dies_at_any_half_second_ends_once_with_its_real_exit_code(tmp_path: Path) -> None:
    """Editors that reattach early (at once) and late (when all is over)."""

    async def one(moment_s: float, *, early: bool) -> None:
        crash = await killed_after(Crash(tmp_path / f"{early}{moment_s}", dict(SLOW)), moment_s)
        if not early:
            await crash.ended()
        commands = Commands()
        tool = RunCommand(commands)
        first = await tool.verify(crash.call, crash.context)
        assert first.verdict in (("running", "finished") if early else ("finished",))
        last = await tool.wait(crash.call, crash.context)
        assert last.verdict == "finished"
        assert last.outcome is not None
        assert (last.outcome.status, last.outcome.exit_code) == ("error", 7)
        assert lines(crash) == ["x"]
        assert await tool.verify(crash.call, crash.context) == last, "asked again, the same answer"
        assert len(commands) == 0
        await until(lambda: not processes_with(crash.mark), "no process to be left")

    await asyncio.gather(*(one(moment, early=early) for moment in MOMENTS_S for early in (True, False)))


async def test_a_command_that_nobody_adopts_is_ended_and_its_record_says_so(tmp_path: Path) -> None:
    async def one(moment_s: float) -> str:
        crash = await killed_after(Crash(tmp_path / str(moment_s), dict(SLOW), grace_ms=200), moment_s)
        await crash.ended()
        await until(lambda: not processes_with(crash.mark), "no process to be left")
        found = await RunCommand(Commands()).verify(crash.call, crash.context)
        assert found.verdict == "finished"
        assert found.outcome is not None
        if found.outcome.reason == "Abandoned":
            assert lines(crash) == []
            assert "none came back in time" in found.outcome.content
            assert found.outcome.exit_code == 143
        else:
            assert lines(crash) == ["x"]
            assert found.outcome.exit_code == 7
        return found.outcome.reason or "exited"

    ends = await asyncio.gather(*(one(moment) for moment in (0, 1, 2, 3.5)))
    assert ends[0] == "Abandoned"


@pytest.mark.parametrize("point", ["in_spawn_before=kill", "in_spawn_after=kill"])
async def test_a_daemon_killed_around_the_spawn_leaves_one_x_or_none_and_the_verdict_says_which(
    tmp_path: Path, point: str
) -> None:
    async def one(number: int) -> None:
        crash = Crash(tmp_path / str(number), {"command": "echo x >> out.txt"}, failpoints=point)
        await crash.begin()
        await crash.gone()
        tool = RunCommand(Commands())
        found = await tool.wait(crash.call, crash.context)
        assert found.verdict in ("not_applied", "finished")
        await until(lambda: not processes_with(crash.mark), "no process to be left")
        assert lines(crash) == (["x"] if found.verdict == "finished" else [])
        assert (await tool.verify(crash.call, crash.context)).verdict == found.verdict

    await asyncio.gather(*(one(number) for number in range(4)))


async def test_a_command_never_starts_after_it_was_judged(place: Place) -> None:
    """The claim race, at random moments of the supervisor's start: first before any, at the end after all of it, so that both
    win at least once."""
    chance = random.Random(7)

    async def one(number: int) -> str:
        directory = place.spool / f"race_{number}"
        out = place.workspace / f"out_{number}"
        spec = Spec(
            ["/bin/sh", "-c", f"echo x >> {out}"], "race", str(place.workspace), directory.name, "s", place.mark
        )
        supervised = await place.commands.start(directory, spec, command_environment({}, place.mark))
        if number >= 44:
            await until(out.exists, "the command to have begun")
        elif number >= 4:
            await asyncio.sleep(chance.random() * 0.08)  # the moment is what is tested
        judged = (await asyncio.to_thread(judge, directory)).found
        await supervised.ended()
        assert out.exists() == (judged != "never_begun")
        later = (await asyncio.to_thread(judge, directory)).found
        assert later == ("never_begun" if judged == "never_begun" else "ended")
        return judged

    found: list[str] = []
    for batch in range(12):
        found += await asyncio.gather(*(one(4 * batch + number) for number in range(4)))
    assert "never_begun" in found
    assert set(found) != {"never_begun"}


@pytest.mark.scenario("a44")
async def test_a_living_command_is_running_until_somebody_stops_it(tmp_path: Path) -> None:
    crash = await killed_after(
        Crash(tmp_path, {"command": "echo up; sleep 300 & setsid sleep 301", "background": True}), 0
    )
    tool = RunCommand(Commands())
    found = await tool.verify(crash.call, crash.context)
    assert found.verdict == "running"
    assert found.outcome is None
    record = json.loads((crash.directory / "record.json").read_text())
    assert str(record["pid"]) in found.evidence
    settled = await tool.settle("stop", crash.call, crash.context)
    assert settled.verdict == "finished"
    assert not processes_with(crash.mark)
    again = await tool.settle("stop", crash.call, crash.context)
    assert (again.verdict, again.message) == (settled.verdict, settled.message)
    after = await tool.verify(crash.call, crash.context)
    assert after.outcome is not None
    assert after.outcome.reason == "Stopped"


@pytest.mark.parametrize("action", ["complete", "undo", "removeLock"])
async def test_a_command_is_never_completed_or_undone(tmp_path: Path, action: str) -> None:
    crash = await killed_after(Crash(tmp_path, {"command": "echo x >> out.txt"}), 0)
    await crash.ended()
    with pytest.raises(NotAvailable) as refused:
        await RunCommand(Commands()).settle(action, crash.call, crash.context)
    assert refused.value.reason == "ActionNotAvailable"
    assert lines(crash) == ["x"]


async def test_a_command_whose_supervisor_was_killed_too_is_running_and_then_unknown(tmp_path: Path) -> None:
    crash = await killed_after(Crash(tmp_path, {"command": "touch up; sleep 300"}), 0)
    await until((crash.workspace / "up").exists, "the command to run")
    record = json.loads((crash.directory / "record.json").read_text())
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    supervisor = Identity(record["supervisor"]["pid"], record["supervisor"]["startTime"], record["bootId"])
    await until(lambda: not alive(supervisor), "the supervisor to be gone")
    tool = RunCommand(Commands())
    found = await tool.verify(crash.call, crash.context)
    assert found.verdict == "running"
    assert "its supervisor is gone" in found.evidence
    command = Identity(record["pid"], record["startTime"], record["bootId"])
    os.kill(command.pid, signal.SIGKILL)
    await until(lambda: not alive(command), "the command to be gone")
    assert (await tool.verify(crash.call, crash.context)).verdict == "unknown"


async def test_stop_also_ends_a_command_without_supervisor(tmp_path: Path) -> None:
    command = "trap '' TERM; setsid sleep 300 & touch up; sleep 301; sleep 302"
    crash = await killed_after(Crash(tmp_path, {"command": command}), 0)
    await until((crash.workspace / "up").exists, "the command to run")
    record = json.loads((crash.directory / "record.json").read_text())
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    tool = RunCommand(Commands())
    assert (await tool.settle("stop", crash.call, crash.context)).verdict == "finished"
    await until(lambda: not processes_with(crash.mark), "no process to be left")


def test_a_pid_that_was_used_again_is_another_process() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert alive(own)
    assert not alive(own._replace(start=own.start + 1))
    assert not alive(own._replace(boot="another boot"))


async def test_a_record_of_a_newer_version_is_recognised_and_left_alone(tmp_path: Path) -> None:
    crash = await killed_after(Crash(tmp_path, {"command": "true"}), 0)
    await crash.ended()
    path = crash.directory / "exit.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    found = await RunCommand(Commands()).verify(crash.call, crash.context)
    assert found.verdict == "unknown"
    assert "newer Standfast (version 99)" in found.evidence
