"""Emacs' eglot, a third client with no code of ours (issue D, part 4 and "What must be shown" 6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fake_api import FakeApi, reply, tool
from support import RunningDaemon, environment

STORY = Path(__file__).parent / "eglot" / "story.el"
AMBIGUOUS = "*** Begin Patch\n*** Update File: twice.py\n@@\n-x = 0\n+x = 1\n*** End Patch\n"


def _missing() -> str | None:
    """What keeps this test from running here, in words for the report."""
    if shutil.which("emacs") is None:
        return "NOT RUN: Emacs is missing (Debian: apt-get install emacs-nox elpa-eglot)"
    found = subprocess.run(
        ["emacs", "--batch", "--eval", "(require 'eglot)"], capture_output=True, timeout=60, check=False
    )
    return None if found.returncode == 0 else "NOT RUN: Emacs has no eglot (Debian: apt-get install elpa-eglot)"


def test_eglot_sees_a_question_a_conflict_and_settles_it(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi, tmp_path: Path
) -> None:
    if (missing := _missing()) is not None:
        pytest.skip(missing)
    (workspace / "twice.py").write_text("x = 0\nx = 0\n")
    fake_api.push(
        reply(tools=[tool("write_file", path="new.txt", content="hello\n")]),
        reply("Written."),
        reply(tools=[tool("apply_patch", patch=AMBIGUOUS)]),
        reply("It fits two places."),
    )
    env = environment(
        daemon.home,
        STORY_URI=workspace.as_uri(),
        STORY_SERVER=f"{sys.executable} -P -m standfast lsp",
        ANTHROPIC_API_KEY=fake_api.key,
        PATH=os.environ["PATH"],
    )
    done = subprocess.run(
        ["emacs", "--batch", "-q", "-l", str(STORY)],
        cwd=workspace,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = next((line for line in done.stdout.splitlines() if line.startswith("STORY ")), None)
    assert said is not None, done.stderr
    story = json.loads(said.removeprefix("STORY "))
    assert "new.txt" in story["question"]
    assert story["written"] == "hello\n"
    assert story["line"] == 1
    assert "fits at several lines (1, 2)" in story["diagnostic"]
    assert {"Apply here: line 1", "Apply here: line 2", "Show difference", "Dismiss"} <= set(story["actions"])
    assert (story["left"], story["settled"]) == ([], True)
    assert (workspace / "twice.py").read_text() == "x = 0\nx = 1\n"
