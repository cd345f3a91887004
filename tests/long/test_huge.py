"""Resuming costs what the last page and the summary cost, whatever lies before them (R5.2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def resumed(place: Path, events: int, each: int, one: int) -> dict[str, Any]:
    """Make a history in one process, resume it in another; what the second says."""
    here = Path(__file__).parent
    env = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    words = [sys.executable, str(here / "huge_process.py"), str(place)]
    for more in ([str(events), str(each), str(one)], []):
        done = subprocess.run([*words, *more], env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(place: Path, events: int, each: int, one: int) -> None:
    told = resumed(place, events, each, one)
    assert told["page"] == 200
    assert told["head"] >= events
    assert told["grownMb"] < 60
    assert "what came before" in told["sent"]
    last = events // 6 - 1
    assert f'"message {last}"' in told["sent"]
    assert f'"message {last - 5}"' not in told["sent"]


@pytest.mark.scenario("a32")
@pytest.mark.requirement("R5.2")
def test_a_huge_history_is_resumed_within_a_small_memory(tmp_path: Path) -> None:
    check(tmp_path, 1_800, 10_000, 20_000_000)
