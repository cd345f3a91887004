"""Neovim when the daemon, the connection or Neovim itself is lost: what is seen, what can be done (issue E, 1 and 3)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from editors.neovim.conftest import Desk, project, set_up
from editors.neovim.dying_server import REFUSAL
from editors.neovim.instance import HERE, Nvim, headless
from fake_api import Gate, reply, tool

BOTH = """\
*** Begin Patch
*** Update File: a.py
@@
-x = 1
+x = 2
*** Add File: b.py
+y = 1
*** End Patch
"""


def lines(nvim: Nvim) -> list[str]:
    return nvim.lua("return (Drive.chat())")


def crash(desk: Desk) -> None:
    """A patch of two files during which the daemon dies by its failpoint; Neovim has reconnected by itself."""
    nvim = desk.nvim
    nvim.lua("Drive.open_chat({ new = true }) Drive.mode('auto')")
    desk.push(reply("I change both.", tools=[tool("apply_patch", patch=BOTH)]))
    nvim.lua("Drive.send('Change both')")
    assert desk.daemon.process.wait(20) == -signal.SIGKILL
    nvim.lua("Drive.heard('was interrupted')")


@pytest.fixture
def killed_between_files(tmp_path: Path) -> Generator[Desk]:
    with set_up(tmp_path, env={"FAILPOINTS": "after_exchange=kill@1"}) as desk:
        crash(desk)
        yield desk


def test_after_a_kill_between_two_files_it_says_once_what_is_certain_and_undo_takes_it_back(
    killed_between_files: Desk,
) -> None:
    desk, nvim = killed_between_files, killed_between_files.nvim
    said = nvim.lua("return Drive.heard('was interrupted')")
    assert "a.py: applied" in said
    assert "b.py: not_applied" in said
    assert ":Standfast resume, review" in said
    assert nvim.lua("return Drive.shown('interrupted: partial')")
    shown = {row[0]: row for row in nvim.lua("return Drive.diagnostics('partial-write')")}
    assert set(shown) == {"a.py", "b.py"}
    assert shown["a.py"][1:3] == [0, 0]
    assert {row[0] for row in nvim.lua("return Drive.diagnostics('interrupted-run')")} == {"a.py", "b.py"}
    nvim.lua("vim.cmd.wincmd('t') Drive.act('a.py', 1, 'Undo the interrupted change')")
    nvim.lua("Drive.shown('settled: undo')")
    assert (desk.workspace / "a.py").read_text() == "x = 1\n"
    assert not (desk.workspace / "b.py").exists()
    nvim.lua("Drive.wait(function() return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'x = 1' end, 'fresh text')")
    assert sum("was interrupted" in message for message in nvim.lua("return Drive.said")) == 1


def test_after_a_kill_the_change_can_be_completed_and_the_run_resumed(killed_between_files: Desk) -> None:
    desk, nvim = killed_between_files, killed_between_files.nvim
    nvim.lua("vim.cmd.wincmd('t') Drive.act('a.py', 1, 'Complete the interrupted change')")
    nvim.lua("Drive.shown('settled: complete')")
    assert (desk.workspace / "a.py").read_text() == "x = 2\n"
    assert (desk.workspace / "b.py").read_text() == "y = 1\n"
    desk.push(reply("Both are done."))
    nvim.lua("vim.cmd.Standfast('resume') Drive.shown('Both are done.')")
    assert "Going on with the run that was interrupted." in lines(nvim)
    nvim.lua("Drive.cleared('a.py')")
    assert "<recovery>" in str(desk.api.accepted[-1].body)


ACTS = {
    "run_started",
    "user_message",
    "permission_resolved",
    "recovery_resolved",
    "conflict_resolved",
    "message_dequeued",
}
"""What stands in a history only because somebody went on, settled or answered."""


def acts_since_the_crash(desk: Desk) -> list[str]:
    """By the daemon's own word, after it has answered whatever Neovim said until now."""
    desk.nvim.lua(
        "local client = require('standfast.client') local connection = client.all()[1]"
        " client.request(connection, 'session/events', { sessionId = Drive.view().sessionId, afterSeq = 0 },"
        " function(_, page) History = page.events end)"
    )
    events = desk.nvim.lua("return Drive.wait(function() return History end, 'the history')")
    end = max(at for at, event in enumerate(events) if event.get("status") == "interrupted")
    return [event["type"] for event in events[end:] if event["type"] in ACTS]


@pytest.mark.requirement("R-RECOVER-23")
def test_after_a_crash_it_shows_what_is_open_and_leaves_all_of_it_to_the_person(killed_between_files: Desk) -> None:
    desk, asked = killed_between_files, len(killed_between_files.api.requests)
    desk.nvim.lua("Drive.shown('interrupted: partial') Drive.diagnostics('partial-write', 'a.py')")
    desk.nvim.lua("vim.cmd.Standfast({ args = { 'chat' } })")
    assert acts_since_the_crash(desk) == []
    assert len(desk.api.requests) == asked
    assert (desk.workspace / "a.py").read_text() == "x = 2\n" and not (desk.workspace / "b.py").exists()


@pytest.mark.requirement("R-RECOVER-23")
def test_a_question_that_was_open_at_a_crash_is_asked_again_and_closing_it_answers_nothing(tmp_path: Path) -> None:
    with set_up(tmp_path) as desk:
        desk.nvim.lua("Drive.open_chat({ new = true })")
        desk.push(reply("I change it.", tools=[tool("write_file", path="b.py", content="y = 1\n")]))
        desk.nvim.lua("Drive.send('Write it')")
        opened = "return Drive.wait(function() return #Drive.asked == {} end, 'the list')"
        desk.nvim.lua(opened.format(1))
        os.kill(desk.daemon_pid(), signal.SIGKILL)
        desk.nvim.lua(opened.format(2))  # each is closed without a choice
        assert acts_since_the_crash(desk) == []
        assert desk.nvim.lua("return #require('standfast.permission').open()") == 1
        assert not (desk.workspace / "b.py").exists()


def test_a_daemon_killed_while_text_streams_shows_only_what_is_in_the_history(desk: Desk) -> None:
    nvim = desk.nvim
    gate = Gate("half")
    desk.push(reply("The first half. ", "The second half.").insert(gate, after="text_delta"))
    nvim.lua("Drive.send('Tell me')")
    nvim.lua("Drive.shown('The first half.')")
    nvim.lua(
        "require('standfast.client').on('lost', function() vim.schedule(function()"
        " Status = Status or require('standfast').statusline() end) end)"
    )
    os.kill(desk.daemon_pid(), signal.SIGKILL)
    gate.release()
    nvim.lua("Drive.shown('The run was interrupted')")
    assert nvim.lua("return Status") == "Standfast: disconnected"
    assert sum("The first half." in line for line in lines(nvim)) == 1
    stored = nvim.lua(
        "return vim.iter(Drive.view().events):filter(function(e) return e.type == 'assistant_chunk' end)"
        ":map(function(e) return e.text end):join('')"
    )
    assert stored == "The first half. "
    desk.push(reply("Whole again."))
    nvim.lua("vim.cmd.Standfast('resume') Drive.shown('Whole again.')")


@pytest.mark.requirement("R-RECOVER-24")
def test_a_message_that_did_not_arrive_comes_back_and_counts_once_when_sent_again(desk: Desk) -> None:
    nvim = desk.nvim
    nvim.lua("Drive.send('') Box = vim.api.nvim_get_current_buf()")
    pid = desk.daemon_pid()
    os.kill(pid, signal.SIGSTOP)  # it takes nothing any more, and dies before it answers
    nvim.lua("Drive.send('Only once')")
    os.kill(pid, signal.SIGKILL)
    nvim.lua(
        "Drive.wait(function() return vim.api.nvim_buf_get_lines(Box, 0, -1, false)[1] == 'Only once' end, 'the message')"
    )
    nvim.lua("Drive.wait(function() return require('standfast.client').all()[1].state == 'ready' end, 'the daemon')")
    desk.push(reply("Heard."))
    nvim.lua("vim.api.nvim_feedkeys(vim.keycode('<C-s>'), 'xt', false) Drive.shown('Heard.')")
    assert sum(line == "Only once" for line in lines(nvim)) == 1


@pytest.mark.requirement("R-RECOVER-22")
@pytest.mark.scenario("d10")
def test_neovim_closed_in_the_middle_of_a_run_and_opened_again_has_lost_and_doubled_nothing(desk: Desk) -> None:
    before = len(desk.api.accepted)
    gate = Gate("half")
    desk.push(reply("One two ", "three four.").insert(gate, after="text_delta"))
    first = desk.another()
    first.lua("Drive.send('Count')")
    first.lua("Drive.shown('One two')")
    assert first.process is not None
    first.process.kill()
    first.process.wait()
    again = desk.another()
    again.lua("Drive.shown('One two')")
    gate.release()
    again.lua("Drive.shown('One two three four.')")
    again.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    assert [line for line in lines(again) if line] == ["▌ You", "Count", "▌ Standfast", "One two three four."]
    seqs = again.lua("return vim.tbl_map(function(e) return e.seq end, Drive.view().events)")
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(desk.api.accepted) == before + 1


# -- servers that fail ------------------------------------------------------------------------------------------------


@pytest.fixture
def dying(tmp_path: Path) -> Generator[Any]:
    """Opens a Neovim whose server fails in a given way; the file counts its starts."""
    (tmp_path / "home").mkdir(mode=0o700)
    workspace, starts = project(tmp_path / "project"), tmp_path / "starts"

    def opener(how: str) -> Any:
        command = [sys.executable, str(HERE / "dying_server.py"), how, str(starts)]
        restart = {"first_ms": 1, "most_ms": 5}
        return headless(tmp_path / "home", workspace, "a.py", cmd=command, restart=restart)

    opener.starts = starts  # type: ignore[attr-defined]
    yield opener


@pytest.mark.scenario("d12")
@pytest.mark.requirement("R-RECOVER-21")
def test_a_server_that_cannot_stay_is_started_five_times_and_then_a_person_is_told_what_to_do(dying: Any) -> None:
    with dying("exit") as nvim:
        said = nvim.lua("return Drive.heard('again and again')")
        assert ":checkhealth standfast" in said
        assert ":Standfast restart" in said
        assert dying.starts.read_text().count("start") == 5
        assert nvim.lua("return require('standfast').statusline()") == "Standfast: disconnected"


def test_a_request_that_is_open_when_the_server_dies_fails_and_is_not_lost(dying: Any) -> None:
    with dying("mute") as nvim:
        nvim.lua(
            "local client = require('standfast.client') local root = client.root_of(0)"
            " Answers = {} client.ensure(root, function(connection) client.request(connection, 'session/create', {},"
            " function(err) table.insert(Answers, err.reason) end) end)"
        )
        assert nvim.lua("return Drive.wait(function() return Answers[1] and Answers end, 'the failure')") == [
            "Disconnected"
        ]
        # Neovim's own requests too: here one that vim.lsp.buf_request_all waits for.
        nvim.lua(
            "local client = require('standfast.client').all()[1] Drive.wait(function() return client.state == 'ready' end, 'it')"
            " client.client:request('standfast/session/create', {}, function(err) Own = err.code end)"
        )
        assert nvim.lua("return Drive.wait(function() return Own end, 'its own')") == -32097


def test_a_daemon_of_another_version_is_named_once_and_not_started_again(dying: Any) -> None:
    with dying("refuse") as nvim:
        assert REFUSAL in nvim.lua("return Drive.heard('protocol 2')")
        assert dying.starts.read_text().count("start") == 1
        assert nvim.lua("return require('standfast.client').all()[1].state") == "failed"
        nvim.lua("vim.cmd('checkhealth standfast')")
        health = nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        assert any(REFUSAL in line for line in health)


def test_a_moved_folder_is_offered_and_the_message_sent_after_the_choice(desk: Desk) -> None:
    before = project(desk.home.parent / "before")
    env = {"ANTHROPIC_API_KEY": desk.api.key}
    desk.push(reply("In the old place."))
    with headless(desk.home, before, "a.py", env=env) as nvim:
        nvim.lua("Drive.open_chat({ new = true }) Drive.send('Remember') Drive.shown('In the old place.')")
        nvim.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    after = before.rename(before.with_name("after"))
    desk.push(reply("In the new place."))
    with headless(desk.home, after, "a.py", env=env) as nvim:
        nvim.lua("Drive.answer('folder moved') vim.cmd.Standfast('sessions') Drive.shown('In the old place.')")
        nvim.lua("Drive.answer('Work in ' .. folder) Drive.send('Go on here')", folder=str(after))
        nvim.lua("Drive.shown('In the new place.')")
        assert nvim.lua("return Drive.asked[#Drive.asked].labels") == [f"Work in {after}", "Not now"]
        assert "Go on here" in lines(nvim)
