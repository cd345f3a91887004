"""What a hostile command reaches under each level, tried in earnest; the table in SECURITY.md says the same (issue G, shown 1)."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from standfast.process import landlock
from trust.levels import LEVELS, NOBODY, SERVER, probe, written
from trust.probes import PROBES

SECURITY = Path(__file__).parents[2] / ".github/SECURITY.md"
SIGNALS_ABI = 6
"""The first Landlock ABI that keeps signals within (Linux 6.12)."""


@cache
def result(level: str, user: int | None = None) -> dict[str, Any]:
    found = probe(level, user=user)
    if found["level"] != level:
        pytest.skip(f"this machine cannot do {level}: {found['why']}")
    return found


def promised(level: str) -> set[str]:
    """What SECURITY.md says is blocked."""
    blocked = {name for name, word in written(SECURITY.read_text())[level].items() if word == "blocked"}
    if level == "partial" and landlock.abi() < SIGNALS_ABI:
        blocked.discard("signal")
    return blocked


def reached(found: dict[str, Any]) -> set[str]:
    return {name for name, word in found["found"].items() if word == "reached"} | set(found["traces"])


def can_be_nobody() -> str | None:
    """Why this test cannot run as another user, None if it can."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "only root can become another user"
    words = [
        "setpriv",
        "--reuid",
        str(NOBODY),
        "--regid",
        str(NOBODY),
        "--clear-groups",
        "/usr/bin/python3",
        "-B",
        "-c",
    ]
    code = "import sys; assert sys.version_info >= (3, 11); import standfast.process.launch"
    ran = subprocess.run([*words, code], env={"PYTHONPATH": str(SERVER)}, cwd="/", capture_output=True, check=False)
    return None if ran.returncode == 0 else "that user cannot run Python 3.11, or not read this checkout"


@pytest.mark.scenario("ATK-05")
@pytest.mark.scenario("ATK-07")
@pytest.mark.scenario("ATK-19")
@pytest.mark.scenario("ATK-22")
@pytest.mark.scenario("ATK-37")
@pytest.mark.scenario("ATK-40")
def test_a_command_in_the_full_sandbox_reaches_nothing() -> None:
    assert reached(result("full")) == set()


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_lets_through_no_more_than_it_says(level: str) -> None:
    assert reached(result(level)) & promised(level) == set()


@pytest.mark.parametrize("level", ["partial", "full"])
def test_the_levels_hold_for_an_unprivileged_user_too(level: str) -> None:
    why = can_be_nobody()
    if why is not None:
        pytest.skip(why)
    assert reached(result(level, NOBODY)) & promised(level) == set()


def test_the_probes_can_get_through_at_all() -> None:
    """Unconfined, nearly all of them do: a probe that always fails would prove nothing."""
    always_blocked = {"env-secret"}  # the environment is clean at every level
    may_be_blocked = {
        "system-secret",
        "mount",
        "io-uring",
        "user-namespace",
        "ptrace",
    }  # not root, or the system's own setting
    assert set(PROBES) - reached(result("none")) - may_be_blocked == always_blocked


def test_the_document_says_that_full_blocks_all() -> None:
    document = written(SECURITY.read_text())
    assert {level: set(found) for level, found in document.items()} == {level: set(PROBES) for level in LEVELS}
    assert set(document["full"].values()) == {"blocked"}
