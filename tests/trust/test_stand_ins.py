"""`.vscode`, `.claude` and their like cannot come to be by a command, and nothing stands in the workspace for long (ATK-19)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from process.place import Place, processes_with
from standfast.process import record as records
from standfast.process.identity import read_stat
from standfast.process.launch import Commands
from standfast.tools.run_command import RunCommand
from support.waiting import until
from trust.conftest import confined_place

WAIT = "touch begun; while [ ! -e on ]; do sleep 0.05; done"


def at_home(tmp_path: Path, *used: str) -> Place:
    """A confined place of a person who uses these programs."""
    for name in used:
        (tmp_path / "home" / name).mkdir(parents=True)
    return confined_place(tmp_path, "full")


def hidden(place: Place) -> list[str]:
    return sorted(path.name for path in place.workspace.iterdir() if path.name.startswith("."))


async def begun(place: Place) -> tuple[RunCommand, str]:
    """A command in the background that has begun; its record's name."""
    tool = RunCommand(place.commands)
    started = await place.call(tool, command=WAIT, background=True)
    await until((place.workspace / "begun").exists, "the command to begin")
    return tool, started.content.split("process_id ")[1].split(",")[0]


@pytest.mark.scenario("ATK-19")
async def test_only_what_the_person_uses_has_a_stand_in_and_it_cannot_be_written(tmp_path: Path) -> None:
    place = at_home(tmp_path, ".vscode-server", ".claude")
    command = "mkdir .vscode; echo {} > .vscode/settings.json; mv .claude other; rmdir .claude; ls -A"
    outcome = await place.call(RunCommand(place.commands), command=command)
    assert outcome.content.count("Read-only file system") == 1, outcome.content
    assert outcome.content.count("busy") == 2, outcome.content
    assert [line for line in outcome.content.splitlines() if line.startswith(".")] == [".claude", ".vscode"]
    assert hidden(place) == []


@pytest.mark.scenario("ATK-19")
async def test_what_nobody_here_uses_is_set_aside_after_the_command_and_told(tmp_path: Path) -> None:
    place = at_home(tmp_path)
    command = "mkdir -p .cursor src && echo evil > .cursor/mcp.json && echo {} > .mcp.json"
    outcome = await place.call(RunCommand(place.commands), command=command)
    assert outcome.exit_code == 0
    assert hidden(place) == [".cursor.set-aside-call_1", ".mcp.json.set-aside-call_1"]
    assert (place.workspace / ".cursor.set-aside-call_1/mcp.json").read_text() == "evil\n"
    assert "rename it back" in outcome.content
    assert f"{place.workspace}/.cursor.set-aside-call_1" in outcome.content


async def test_what_somebody_pulls_meanwhile_stays(tmp_path: Path) -> None:
    place = at_home(tmp_path)
    environ = dict(place.commands.environ)
    subprocess.run(["git", "init", "-q", str(place.workspace)], check=True, env=environ)
    pull = f"mkdir .claude && echo x > .claude/notes && git add . && touch {place.workspace}/on"
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", f"while [ ! -e begun ]; do sleep 0.02; done; {pull}"], cwd=place.workspace, env=environ
    )
    outcome = await place.call(RunCommand(place.commands), command=WAIT)
    assert (outcome.exit_code, watcher.wait(10)) == (0, 0)
    assert hidden(place) == [".claude", ".git"]


async def test_after_a_killed_supervisor_the_tree_can_be_ended_and_no_stand_in_is_left(tmp_path: Path) -> None:
    """Also where the outermost process of the sandbox went with it: what lives inside is not given up as lost."""
    place = at_home(tmp_path, ".claude")
    _, name = await begun(place)
    record = records.read_record(str(place.spool / name))
    assert record is not None
    for pid in (record.supervisor.pid, record.process.pid):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: len(place.commands) == 0, "the daemon to hear of it")
    state = await place.commands.state(place.spool / name)
    assert state.found == "unsupervised"
    assert hidden(place) == [".claude"]
    await place.commands.stop(place.spool / name)
    assert hidden(place) == []
    await until(lambda: not processes_with(place.mark), "no process to be left")


async def test_the_next_daemon_removes_what_all_that_were_killed_left(tmp_path: Path) -> None:
    place = at_home(tmp_path, ".claude")
    _, name = await begun(place)
    await adopt_again(place)
    assert hidden(place) == [".claude"]  # the command lives, so it stays
    record = records.read_record(str(place.spool / name))
    assert record is not None
    killed = (record.supervisor.pid, *processes_with(place.mark))
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    await until(lambda: all(is_over(pid) for pid in killed), "all to be gone")
    await adopt_again(place)
    assert hidden(place) == []


def is_over(pid: int) -> bool:
    """Its descriptors are closed too, and with them its locks: an ending process loses its environment before that."""
    found = read_stat(pid)
    return found is None or found.state in "ZX"


async def adopt_again(place: Place) -> None:
    """What a daemon does at its start."""
    place.commands.close()
    place.commands = Commands(sandbox=place.commands.sandbox)
    await place.commands.adopt_all(place.spool)
