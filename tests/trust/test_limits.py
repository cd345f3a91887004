"""What a confined command can use up, and what no second mount of the daemon's places opens (ATK-57, ATK-07)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from process.place import processes_with
from standfast.config import parse_settings
from standfast.process.confine import TASKS_MAX
from standfast.process.sandbox import Level
from standfast.tools.run_command import RunCommand
from support.waiting import until
from trust.conftest import confined_place
from trust.levels import SERVER

SAID = "[sandbox]\nmemory_mb = 500\n"
LOOK = """
import asyncio, sys
from pathlib import Path
from trust.conftest import confined_place
from standfast.tools.run_command import RunCommand

async def main(base, level):
    place = confined_place(base, level, read=[sys.prefix, sys.base_prefix, str(base / "shown")])
    outcome = await place.call(RunCommand(place.commands), command=f"cat {base}/shown/alias/key; cat {base}/shown/fine; ls")
    place.commands.close()
    print(outcome.content)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.scenario("ATK-57")
async def test_processes_are_limited_and_no_core_is_dumped(tmp_path: Path, level: Level) -> None:
    place = confined_place(tmp_path, level)
    outcome = await place.call(RunCommand(place.commands), command="ulimit -Hu; ulimit -Hc")
    tasks, core = outcome.content.splitlines()[:2]
    assert int(tasks) <= TASKS_MAX
    assert core == "0"


@pytest.mark.scenario("ATK-57")
async def test_memory_is_limited_where_the_person_says_so_and_the_result_names_it(tmp_path: Path, level: Level) -> None:
    place = confined_place(tmp_path, level)
    tool, command = RunCommand(place.commands), f"{sys.executable} -c 'print(len(bytearray(600 * 1024 ** 2)))'"
    assert (await place.call(tool, command=command)).exit_code == 0
    place.commands.sandbox = place.commands.sandbox._replace(
        memory=parse_settings(SAID, "x").sandbox.memory_mb * 1024**2
    )
    outcome = await place.call(tool, command=command)
    assert outcome.exit_code == 1
    assert "MemoryError" in outcome.content
    assert "[Each process may have 500 MiB here" in outcome.content
    for needs in ("gcc", "node"):
        if shutil.which(needs):
            work = {
                "gcc": "echo 'int main(void) { return 0; }' | gcc -x c - && ./a.out",
                "node": "node -e 'console.log(1)'",
            }
            assert (await place.call(tool, command=work[needs])).exit_code == 0, needs
    raised = await place.call(tool, command="ulimit -d unlimited && ulimit -d")
    assert raised.exit_code != 0, "nobody in it takes the limit away"


@pytest.mark.scenario("ATK-57")
async def test_what_forks_itself_away_and_does_not_listen_ends_at_once_with_its_namespace(tmp_path: Path) -> None:
    place = confined_place(tmp_path, "full")
    away = "import os, signal; signal.signal(15, signal.SIG_IGN)\nwhile True:\n if os.fork(): os._exit(0)"
    command = f"trap '' TERM; {sys.executable} -c '{away}' & for i in $(seq 50); do sleep 600 & done; touch begun; wait"
    outcome = await place.call(RunCommand(place.commands), command=command, timeout_s=2)
    assert outcome.reason == "TimedOut"
    assert (place.workspace / "begun").exists()
    await until(lambda: not processes_with(place.mark), "no process to be left")


@pytest.mark.scenario("ATK-07")
def test_a_second_mount_of_the_daemons_places_shows_nothing(tmp_path: Path, level: Level) -> None:
    """A bind mount of the state directory beneath something that commands may read."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root can mount")
    (tmp_path / "state").mkdir()
    (tmp_path / "shown/alias").mkdir(parents=True)
    (tmp_path / "shown/fine").write_text("fine")
    (tmp_path / "state/key").write_text("canary")
    script = 'mount --bind "$1/state" "$1/shown/alias" && cat "$1/shown/alias/key" && exec "$2" -c "$3" "$1" "$4"'
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), sys.executable, LOOK, level],
        env={**os.environ, "PYTHONPATH": f"{SERVER}:{SERVER.parent / 'tests'}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.count("canary") == 1, ran.stdout + ran.stderr
    assert "fine" in ran.stdout
