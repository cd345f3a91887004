"""One daemon per store, wherever XDG puts things (design.md "Processes", "places")."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-P", "-m", "standfast", "daemon")


def daemon(home: Path, *words: str, **xdg: str) -> Any:
    """`standfast daemon WORDS --json` of a person whose home that is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "STANDFAST_"))}
    env = {**kept, "HOME": str(home), **xdg}
    ran = subprocess.run([*COMMAND, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ran.stderr
    return json.loads(ran.stdout) if "--json" in words else ran.returncode


@pytest.mark.parametrize("shares_a_runtime_directory", [False, True])
def test_two_homes_of_one_user_have_a_daemon_each(tmp_path: Path, *, shares_a_runtime_directory: bool) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    xdg = {"XDG_RUNTIME_DIR": str(runtime)} if shares_a_runtime_directory else {"TMPDIR": str(runtime)}
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir(mode=0o700)
    try:
        assert [daemon(home, "start", **xdg) for home in homes] == [0, 0]
        told = [daemon(home, "status", "--json", **xdg) for home in homes]
        assert [one["store"] for one in told] == [str(home / ".local/state/standfast/standfast.db") for home in homes]
        assert told[0]["pid"] != told[1]["pid"]
    finally:
        stopped = [daemon(home, "stop", **xdg) for home in homes]
    assert stopped == [0, 0]


def test_stopping_where_nothing_ever_ran_says_so_and_makes_nothing(tmp_path: Path) -> None:
    xdg = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert daemon(tmp_path, "stop", **xdg) == 0
    assert list(tmp_path.iterdir()) == []
