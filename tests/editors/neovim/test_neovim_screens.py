"""Neovim in a real terminal (tmux), with a person's keys only: what stands on the screen at the moments that matter."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from editors.neovim.conftest import Desk, set_up
from editors.neovim.instance import HERE, find_nvim, until, variables
from fake_api import Gate, reply, tool

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="NOT RUN: tmux is missing")

COLUMNS, LINES = 110, 32
AMBIGUOUS = "*** Begin Patch\n*** Update File: twice.py\n@@\n-x = 0\n+x = 1\n*** End Patch\n"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Add File: b.py\n+y = 1\n*** End Patch\n"


@dataclass(slots=True)
class Terminal:
    """A terminal of tmux with Neovim in it."""

    server: Path
    shots: Path | None
    """Where screens are kept, if STANDFAST_SCREENS names a folder."""

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", str(self.server), "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def see(self, *texts: str, shot: str | None = None) -> str:
        """Wait until all texts are on the screen."""
        seen = ""

        def there() -> bool:
            nonlocal seen
            seen = self.screen()
            return all(text in seen for text in texts)

        assert until(there), f"not all of {texts} came:\n{seen}"
        if shot and self.shots:
            (self.shots / f"{shot}.txt").write_text(seen)
        return seen


@contextlib.contextmanager
def terminal(desk: Desk, *files: str) -> Generator[Terminal]:
    program = find_nvim()
    assert program is not None
    kept = os.environ.get("STANDFAST_SCREENS")
    with tempfile.TemporaryDirectory(prefix="tm") as short:
        opened = Terminal(Path(short) / "s", Path(kept) if kept else None)
        env = variables(
            desk.home, {"restart": {"first_ms": 1500}}, {"ANTHROPIC_API_KEY": desk.api.key, "TERM": "screen-256color"}
        )
        words = [program, "--clean", "-u", str(HERE / "init.lua"), "--listen", str(Path(short) / "n"), *files]
        subprocess.run(
            ["tmux", "-S", str(opened.server), "-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *words],
            cwd=desk.workspace, env=env, check=True, timeout=30,
        )  # fmt: skip
        try:
            yield opened
        finally:
            subprocess.run(["tmux", "-S", str(opened.server), "kill-server"], check=False, timeout=30)


@pytest.fixture(scope="module")
def own_desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    with set_up(tmp_path_factory.mktemp("screens")) as desk:
        yield desk


def test_a_first_session_by_keys_alone(own_desk: Desk) -> None:
    desk = own_desk
    gate = Gate("half")
    desk.push(
        reply("I change ", "both files.", thinking="Two small files.", tools=[tool("apply_patch", patch=PATCH)]).insert(
            gate, after="text_delta"
        ),
        reply("Both are changed."),
    )
    with terminal(desk, "a.py") as term:
        term.see("x = 1")
        term.type(":Standfast")
        term.keys("Enter")
        term.see("Message · <C-s> sends", "Untitled · ask")
        term.type("Set x to 2 and add y")
        term.keys("C-s")
        gate.wait()
        term.see("▌ You", "Set x to 2 and add y", "I change", "running", shot="streaming")
        gate.release()
        term.see(
            "Change a.py",
            "1: Show file 2 of 2",
            "2: Allow",
            "x = 2",
            "before · a.py",
            "after · a.py",
            "s//m/Set x to 2 and add y",  # the tab line names the chat
            shot="permission",
        )
        assert (desk.workspace / "a.py").read_text() == "x = 1\n"
        term.type("2")
        term.keys("Enter")
        term.see("✓ apply_patch", "Both are changed.", "13 lines (za opens)", "x = 2", shot="done")
        assert (desk.workspace / "a.py").read_text() == "x = 2\n"


def test_a_conflict_by_keys_alone(own_desk: Desk) -> None:
    desk = own_desk
    (desk.workspace / "twice.py").write_text("x = 0\n\nx = 0\n")
    desk.push(reply(tools=[tool("apply_patch", patch=AMBIGUOUS)]), reply("It fits two places."))
    with terminal(desk, "twice.py") as term:
        term.type(":Standfast! chat")
        term.keys("Enter")
        term.see("Message · <C-s> sends")
        term.keys("Escape")
        term.type(":Standfast mode auto")
        term.keys("Enter")
        term.see("Mode: auto")
        term.type("iChange it")
        term.keys("C-s")
        term.see("conflict in twice.py", "It fits two places.", shot="conflict")
        term.keys("Escape", "C-w", "t", "g", "g")
        term.type("gra")
        term.see("Apply here: line 1", "Apply here: line 3", "Let the agent", "Show difference", shot="actions")
        number = next(line for line in term.screen().splitlines() if "Show difference" in line).strip().split(":")[0]
        term.type(number)
        term.keys("Enter")
        term.see("your file · twice.py", shot="difference")
        term.type(":tabclose")
        term.keys("Enter")
        term.type("gra")
        term.see("Apply here: line 3")
        number = next(line for line in term.screen().splitlines() if "Apply here: line 3" in line).strip().split(":")[0]
        term.type(number)
        term.keys("Enter")
        term.see("settled: applyAt", "x = 1", shot="settled")
        assert (desk.workspace / "twice.py").read_text() == "x = 0\n\nx = 1\n"


def test_a_killed_daemon_is_seen_and_the_run_resumed_by_keys_alone(own_desk: Desk) -> None:
    desk = own_desk
    gate = Gate("half")
    desk.push(reply("I begin. ", "Never.").insert(gate, after="text_delta"), reply("Now it is whole."))
    with terminal(desk, "a.py") as term:
        term.type(":Standfast! chat")
        term.keys("Enter")
        term.see("Message · <C-s> sends")
        term.type("Go")
        term.keys("C-s")
        gate.wait()
        term.see("I begin.")
        os.kill(desk.daemon_pid(), signal.SIGKILL)
        gate.release()
        term.see("disconnected, connecting again", shot="disconnected")
        term.see("The run was interrupted.")
        term.keys("Escape")
        term.see("was interrupted (:Standfast resume, review)", shot="interrupted")
        term.type(":Standfast resume")
        term.keys("Enter")
        term.see("Going on with the run", "Now it is whole.", "succeeded", shot="resumed")
