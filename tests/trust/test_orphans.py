"""A sandbox that lost its supervisor and its outermost process: what goes on within is still a living command, and can be ended."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from process.crash import Crash
from process.place import processes_with
from standfast.process.identity import Identity, alive
from standfast.process.launch import Commands
from standfast.process.sandbox import Level
from standfast.tools.run_command import RunCommand
from support.waiting import until
from trust.test_confined_commands import skip_without


async def test_what_goes_on_in_a_sandbox_without_its_outermost_process_is_running_and_can_be_ended(
    tmp_path: Path, level: Level
) -> None:
    skip_without(level, tmp_path)
    crash = Crash(tmp_path / "crash", {"command": "(touch ready; sleep 600) & wait"})
    crash.environ = {"LEVEL": level, "HOME": str(tmp_path)}
    await crash.begin()
    await until((crash.workspace / "ready").exists, "the command to run")
    await crash.kill()
    record = json.loads((crash.directory / "record.json").read_text())
    outermost = Identity(record["pid"], record["startTime"], record["bootId"])
    os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    os.kill(outermost.pid, signal.SIGKILL)
    await until(lambda: not alive(outermost), "the outermost process to be gone")
    assert processes_with(crash.mark), "nothing goes on: this tests nothing"
    tool = RunCommand(Commands())
    found = await tool.verify(crash.call, crash.context)
    assert found.verdict == "running", found
    assert (await tool.settle("stop", crash.call, crash.context)).verdict == "finished"
    await until(lambda: not processes_with(crash.mark), "no process to be left")
