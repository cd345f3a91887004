"""`standfast import` as people use it: one file, a folder of them, with what cannot be taken in said (R3.6)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import RunningDaemon, environment

DATA = Path(__file__).parent / "data"


def standfast(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "standfast", *words],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.requirement("R3.6")
def test_a_folder_is_taken_in_file_by_file_and_a_bad_one_is_said_and_passed_over(
    module_daemon: RunningDaemon, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions" / "2026" / "11"
    folder.mkdir(parents=True)
    for file in (*(DATA / "codex").glob("*.jsonl"), *(DATA / "pi").glob("*.jsonl")):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "bad.jsonl").write_text("{}\n")
    (tmp_path / "sessions" / "history.jsonl").write_text('{"session_id": "x", "ts": 1, "text": "y"}\n')
    done = standfast(module_daemon.home, "import", "--json", str(tmp_path / "sessions"))
    assert done.returncode == 1
    assert "bad.jsonl" in done.stderr
    assert "1 of 8 files" in done.stderr
    taken = [json.loads(line)["sessionId"] for line in done.stdout.splitlines()]
    assert len(set(taken)) == 7
    again = standfast(module_daemon.home, "import", "--json", str(tmp_path / "sessions"))
    assert [json.loads(line)["sessionId"] for line in again.stdout.splitlines()] == taken


def test_a_file_that_was_named_and_is_no_session_is_an_error_that_says_so(
    module_daemon: RunningDaemon, tmp_path: Path
) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear all,\n")
    done = standfast(module_daemon.home, "import", str(file))
    assert done.returncode != 0
    assert "letter.txt" in done.stderr
    assert "Codex, Claude Code or pi" in done.stderr.replace("\n", " ")
