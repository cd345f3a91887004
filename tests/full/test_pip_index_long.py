"""pip inside the full sandbox, from whatever index this machine's pip uses, with the network allowed (issue G, shown 3).

Half a minute; skipped where no index is reached from outside the sandbox either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from process.place import Place
from standfast.process import sandbox
from standfast.process.launch import Commands
from standfast.tools.run_command import RunCommand

PACKAGE = "iniconfig"
"""Small, and without dependencies."""


def place_like_the_persons(base: Path) -> Place:
    """With this user's own home, PATH and environment: what a daemon that they started would have."""
    state = base / "state"
    state.mkdir()
    exposure = sandbox.expose(os.path.expanduser("~"), own=[str(state)], path=os.environ["PATH"])
    found = sandbox.detect(exposure)
    if found.level != "full":
        pytest.skip(f"this machine cannot do full: {found.why}")
    return Place(base, Commands(environ=os.environ, sandbox=found))


async def test_pip_installs_from_a_real_index_into_a_virtual_environment(tmp_path: Path) -> None:
    place = place_like_the_persons(tmp_path)
    outside = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-cache-dir",
        "-d",
        str(tmp_path / "out"),
    ]
    if subprocess.run([*outside, PACKAGE], capture_output=True, timeout=100, check=False).returncode:
        pytest.skip("no index is reached from here")
    shell = RunCommand(place.commands)
    install = f"python3 -m venv .venv && .venv/bin/pip install -q --retries 0 --no-cache-dir {PACKAGE}"
    refused = await place.call(shell, command=install)
    if refused.status == "ok":
        pytest.skip("this machine's pip has the package without a network")
    assert "network: true for the network" in refused.content
    done = await place.call(
        shell, command=f"{install} && .venv/bin/python -c 'import {PACKAGE}; print({PACKAGE}.__file__)'", network=True
    )
    assert done.exit_code == 0, done.content
    assert ".venv/lib/" in done.content
