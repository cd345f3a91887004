"""The demo keeps its word: two real kills, and every verdict is what the disk says. `tests/full` plays more seeds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from standfast.cli.demo.stage import WRITE_MOMENTS, choose

DEMO = (sys.executable, "-P", "-m", "standfast", "demo")


def play(*options: str, tmp: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo with a temporary directory of its own, to see what it leaves."""
    return subprocess.run(
        [*DEMO, *options],
        env={**os.environ, "TMPDIR": str(tmp)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture
def tmp() -> Any:
    """Short, since sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="sf") as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", [1, 2], ids=["not-applied", "partial"])
def test_the_facts_of_the_demo_hold(seed: int, tmp: Path) -> None:
    ran = play("--json", "--seed", str(seed), tmp=tmp)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    facts = json.loads(ran.stdout)
    write, command = facts["kills"]
    assert facts["ok"] and facts["quietAfterCrash"] and facts["testsPassed"] and not facts["torn"]
    assert facts["model"] == "scripted"
    assert len(set(facts["pids"])) == 3
    for pid in facts["pids"]:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0) if not Path(f"/proc/{pid}/stat").exists() else _not_a_zombie(pid)
    states = {file["state"] for file in write["files"]}
    assert write["verdict"] == (states.pop() if len(states) == 1 else "partial")
    assert write["evidence"]
    assert {one["file"] for one in write["diagnostics"]} == {"shop/money.py", "shop/cart.py"}
    assert "Resume the run" in write["actions"]
    assert command["verdict"] in ("running", "finished")
    assert command["verdicts"][-1] == "finished"
    assert "+        total = sum(cents * quantity" in facts["finalDiff"]
    assert list(tmp.iterdir()) == []


def _not_a_zombie(pid: int) -> None:
    """A killed daemon may wait for its parent to notice; that is as gone as it gets."""
    if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
        raise ProcessLookupError


def test_it_says_plainly_that_the_model_is_scripted_and_is_plain_when_piped(tmp: Path) -> None:
    ran = play("--seed", "4", tmp=tmp)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    assert "scripted" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert ran.stdout.count("SIGKILL ") >= 2
    assert "+        total = sum(cents * quantity" in ran.stdout
    assert list(tmp.iterdir()) == []


def test_an_interrupted_demo_leaves_nothing_behind(tmp: Path) -> None:
    process = subprocess.Popen(
        [*DEMO, "--seed", "0"], env={**os.environ, "TMPDIR": str(tmp)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "read_file" in line:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(tmp.iterdir()) == []


def test_seeds_choose_the_moments_repeatably_and_reach_all_of_them() -> None:
    assert choose(5) == choose(5)
    assert {choose(seed).write for seed in range(20)} == set(WRITE_MOMENTS)
    assert {choose(seed).choice for seed in range(20)} == {"complete", "undo"}
