"""What a person does all day in Neovim: write, watch, answer, look at differences, settle conflicts (issue E, 1 and 3)."""

from __future__ import annotations

import itertools

import pytest

from editors.neovim.conftest import Desk
from editors.neovim.instance import Nvim
from fake_api import Gate, reply, tool

_numbers = itertools.count(1)
PATCH = """\
*** Begin Patch
*** Update File: a.py
@@
-x = 1
+x = 2
*** End Patch
"""
TWICE = "def one():\n    return 0\n\n\ndef two():\n    return 0\n"
AMBIGUOUS = """\
*** Begin Patch
*** Update File: twice.py
@@
-    return 0
+    return 1
*** End Patch
"""


def ask(nvim: Nvim, text: str = "go") -> None:
    nvim.lua("Drive.send(text)", text=text)


def lines(nvim: Nvim) -> list[str]:
    return nvim.lua("return (Drive.chat())")


def test_a_message_streams_into_the_chat_once_and_leaves_the_cursor_where_it_is(desk: Desk) -> None:
    nvim = desk.nvim
    gate = Gate("half")
    text = [f"Line {number} of the answer.\n" for number in range(40)]
    desk.push(reply(*text, thinking="Let me think.\nStep two.").insert(gate, after="text_delta", nth=30))
    ask(nvim, "Tell me")
    gate.wait()
    nvim.lua("Drive.shown('Line 29 of')")
    assert not any("Line 30 of" in line for line in lines(nvim))
    nvim.lua(
        "local _, chat = Drive.chat() Reader = vim.fn.bufwinid(chat) vim.api.nvim_set_current_win(Reader)"
        " vim.api.nvim_win_set_cursor(Reader, { 8, 3 })"
    )
    gate.release()
    nvim.lua("Drive.shown('Line 39 of')")
    nvim.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    assert nvim.lua("return vim.api.nvim_win_get_cursor(Reader)")[1] == 3
    assert nvim.lua("return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(Reader), 0, 2, false)") == [
        "▌ You",
        "Tell me",
    ]
    shown = lines(nvim)
    assert [line for line in shown if line.startswith("Line ")] == [line.rstrip("\n") for line in text]
    assert "  ▸ thinking, 2 lines (za opens)" in shown
    nvim.lua("vim.fn.search('za opens') vim.cmd.normal('za')")
    assert "  │ Let me think." in lines(nvim)
    nvim.lua("vim.cmd.normal('za')")
    assert lines(nvim) == shown


def test_an_open_window_at_the_end_follows_the_text(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(*[f"Line {number}.\n" for number in range(200)]))
    ask(nvim)
    nvim.lua("Drive.wait(function() return (Drive.view().run or {}).status == 'succeeded' end, 'the end')")
    nvim.lua("Drive.shown('Line 199.')")
    last, count = nvim.lua(
        "local _, chat = Drive.chat() return { vim.fn.line('w$', vim.fn.bufwinid(chat)), vim.api.nvim_buf_line_count(chat) }"
    )
    assert last == count


def test_a_permission_shows_the_difference_before_the_answer(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Done."))
    nvim.lua(
        "Seen = nil local select = vim.ui.select vim.ui.select = function(...)"
        " Seen = vim.tbl_map(function(w) local b = vim.api.nvim_win_get_buf(w)"
        " return { vim.wo[w].diff, vim.api.nvim_buf_get_lines(b, 0, -1, false) } end,"
        " vim.api.nvim_tabpage_list_wins(0)) return select(...) end Drive.answer('Allow')"
    )
    ask(nvim)
    nvim.lua("Drive.shown('Done.')")
    assert nvim.lua("return Seen") == [[True, ["x = 1"]], [True, ["x = 2"]]]
    assert (desk.workspace / "a.py").read_text() == "x = 2\n"
    assert nvim.lua("return #vim.api.nvim_list_tabpages()") == 1
    assert nvim.lua("return Drive.asked[1].labels") == ["Allow", "Allow for this session", "Deny", "Decide later"]


def test_a_denied_write_changes_nothing_and_the_run_goes_on(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Then not."))
    nvim.lua("Drive.answer('Deny')")
    ask(nvim)
    nvim.lua("Drive.shown('Then not.')")
    assert (desk.workspace / "a.py").read_text() == "x = 1\n"
    assert nvim.lua("return Drive.shown('denied')")


def test_a_question_does_not_open_while_the_person_writes(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Done."))
    nvim.lua("vim.cmd.wincmd('t') vim.cmd.edit('other.txt')")
    nvim.lua("Drive.take_over() require('standfast').send('go')")
    assert ":Standfast review" in nvim.lua("return Drive.heard('your answer is needed')")
    assert nvim.lua("return #Drive.asked") == 0
    assert nvim.lua("return require('standfast.status').of(require('standfast.client').root_of(0))") == {
        "state": "needs you",
        "count": 1,
    }
    nvim.lua("Drive.answer('Answer: ', 'Allow') vim.cmd.Standfast('review')")
    nvim.lua("Drive.shown('Done.')")


def conflict(desk: Desk) -> str:
    """A patch that fits two places of a file; returns the file's name, which no other test of the shared desk uses."""
    nvim = desk.nvim
    name = f"twice{next(_numbers)}.py"
    (desk.workspace / name).write_text(TWICE)
    patch = AMBIGUOUS.replace("twice.py", name)
    desk.push(reply(tools=[tool("apply_patch", patch=patch)]), reply("It did not fit."))
    nvim.lua("Drive.mode('auto')")
    ask(nvim)
    nvim.lua("Drive.shown('It did not fit.')")
    nvim.lua("vim.cmd.wincmd('t')")
    return name


def test_a_conflict_is_a_diagnostic_on_its_line_with_actions(desk: Desk) -> None:
    nvim = desk.nvim
    name = conflict(desk)
    titles = nvim.lua("return Drive.actions(name, 2)", name=name)
    assert nvim.lua("return Drive.diagnostics('patch-conflict', name)", name=name)[0][:5] == [name, 1, 0, 1, 12]
    for title in (
        "Apply here: line 2",
        "Apply here: line 6",
        "Let the agent read the file again and retry",
        "Keep the file as it is",
        "Show difference",
        "Dismiss",
    ):
        assert title in titles
    assert nvim.lua("return Drive.actions(name, 4)", name=name) == []


def test_apply_here_applies_there_and_the_buffer_is_fresh_at_once(desk: Desk) -> None:
    nvim = desk.nvim
    name = conflict(desk)
    nvim.lua("Drive.act(name, 2, 'Apply here: line 6') Drive.cleared(name)", name=name)
    wanted = "def one():\n    return 0\n\n\ndef two():\n    return 1\n"
    assert (desk.workspace / name).read_text() == wanted
    nvim.lua(
        "Drive.wait(function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n') .. '\\n' == wanted end, 'it')",
        wanted=wanted,
    )


@pytest.mark.parametrize("title", ["Keep the file as it is", "Dismiss"])
def test_keep_and_dismiss_change_no_byte(desk: Desk, title: str) -> None:
    nvim = desk.nvim
    name = conflict(desk)
    nvim.lua("Drive.act(name, 2, title) Drive.cleared(name)", name=name, title=title)
    assert (desk.workspace / name).read_text() == TWICE


def test_retry_lets_the_agent_look_again(desk: Desk) -> None:
    nvim = desk.nvim
    name = conflict(desk)
    desk.push(reply("I looked again."))
    nvim.lua("Drive.act(name, 2, 'Let the agent')", name=name)
    nvim.lua("Drive.shown('I looked again.')")


def test_show_difference_has_three_sides_and_the_real_file_in_the_middle(desk: Desk) -> None:
    nvim = desk.nvim
    name = f"three{next(_numbers)}.py"
    (desk.workspace / name).write_text("a = 1\n\n\nb = 1\n")
    gate = Gate("read")
    desk.push(
        reply(tools=[tool("read_file", path=name)]),
        reply(tools=[tool("write_file", path=name, content="a = 1\n\n\nb = 2\n")]).insert(gate, after="message_start"),
        reply("Refused."),
    )
    nvim.lua("Drive.mode('auto')")
    ask(nvim)
    gate.wait()
    (desk.workspace / name).write_text("a = 3\n\n\nb = 1\n")
    gate.release()
    nvim.lua("Drive.shown('Refused.') vim.cmd.wincmd('t')")
    titles = nvim.lua("return Drive.actions(name, 1)", name=name)
    assert "Apply merged: keep both changes" in titles
    nvim.lua("Drive.act(name, 1, 'Show difference')", name=name)
    sides = nvim.lua(
        "return Drive.wait(function() local w = vim.api.nvim_tabpage_list_wins(0) return #w == 3 and vim.tbl_map(function(each)"
        " local b = vim.api.nvim_win_get_buf(each) return { vim.wo[each].diff, vim.bo[b].modifiable,"
        " vim.bo[b].buftype, vim.api.nvim_buf_get_lines(b, 0, -1, false) } end, w) end, 'three windows')"
    )
    assert sides == [
        [True, False, "nofile", ["a = 1", "", "", "b = 1"]],
        [True, True, "", ["a = 3", "", "", "b = 1"]],
        [True, False, "nofile", ["a = 1", "", "", "b = 2"]],
    ]
    nvim.lua("vim.cmd.tabclose() Drive.act(name, 1, 'Apply merged') Drive.cleared(name)", name=name)
    assert (desk.workspace / name).read_text() == "a = 3\n\n\nb = 2\n"


@pytest.mark.scenario("d03")
def test_an_open_buffer_shows_the_agents_edit_and_one_undo_takes_it_back(desk: Desk) -> None:
    nvim = desk.nvim
    (desk.workspace / "a.py").write_text("".join(f"line {n}\n" for n in range(20)))
    nvim.lua("vim.cmd.wincmd('t') vim.cmd.edit('a.py') vim.cmd.checktime() vim.api.nvim_win_set_cursor(0, { 7, 2 })")
    nvim.lua("Drive.wait(function() return vim.api.nvim_buf_line_count(0) == 20 end, 'the file')")
    patch = PATCH.replace("x = 1", "line 3").replace("x = 2", "LINE 3")
    desk.push(reply(tools=[tool("apply_patch", patch=patch)]), reply("Done."))
    nvim.lua("Drive.mode('auto') require('standfast').send('go')")
    nvim.lua(
        "Drive.wait(function() return vim.api.nvim_buf_get_lines(0, 3, 4, false)[1] == 'LINE 3' end, 'fresh text')"
    )
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [7, 2]
    assert nvim.lua("vim.cmd.undo() return vim.api.nvim_buf_get_lines(0, 3, 4, false)") == ["line 3"]


@pytest.mark.scenario("d01")
def test_unsaved_text_survives_the_agents_edit(desk: Desk) -> None:
    nvim = desk.nvim
    nvim.lua("vim.cmd.wincmd('t') vim.cmd.edit('a.py') vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'mine = 3' })")
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Done."))
    nvim.lua("Drive.mode('auto') require('standfast').send('go')")
    nvim.lua("Drive.shown('Done.')")
    assert nvim.lua("return { vim.api.nvim_buf_get_lines(0, 0, -1, false), vim.bo.modified }") == [
        ["x = 2", "mine = 3"],
        True,
    ]
    assert (desk.workspace / "a.py").read_text() == "x = 1\n"


def test_the_code_lens_on_a_changed_file_takes_the_run_back(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Done."))
    nvim.lua("Drive.mode('auto')")
    ask(nvim)
    nvim.lua("Drive.shown('Done.') Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    assert (desk.workspace / "a.py").read_text() == "x = 2\n"
    titles = nvim.lua(
        "vim.cmd.wincmd('t') vim.cmd.edit('a.py')"
        " Drive.wait(function() return vim.lsp.get_clients({ bufnr = 0 })[1] end, 'the server')"
        " vim.lsp.codelens.refresh({ bufnr = 0 })"
        " local shown = Drive.wait(function() local l = vim.lsp.codelens.get(0) return #l > 0 and l end, 'the lens')"
        " Drive.answer('undo the run') vim.api.nvim_win_set_cursor(0, { 1, 0 }) vim.lsp.codelens.run()"
        " return vim.tbl_map(function(each) return each.command.title end, shown)"
    )
    assert titles[:2] == ["Standfast changed this file (go): review", "undo the run"]
    nvim.lua(
        "Drive.wait(function() return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'x = 1' end, 'the old text')"
    )
    assert (desk.workspace / "a.py").read_text() == "x = 1\n"


def test_a_second_message_waits_in_the_queue_and_can_be_changed(desk: Desk) -> None:
    nvim = desk.nvim
    gate = Gate("hold")
    desk.push(reply("First.").insert(gate, after="text_delta"), reply("Second."))
    ask(nvim, "one")
    gate.wait()
    ask(nvim, "two")
    nvim.lua("Drive.shown('1. two')")
    nvim.lua("vim.ui.input = function(_, done) done('two, better') end Drive.answer('two', 'Edit')")
    nvim.lua("vim.cmd.Standfast('queue') Drive.shown('1. two, better')")
    gate.release()
    nvim.lua("Drive.shown('Second.')")
    assert "two, better" in lines(nvim)
    assert not any(line.startswith("Waiting") for line in lines(nvim))


def test_stop_ends_the_run_and_says_so(desk: Desk) -> None:
    nvim = desk.nvim
    gate = Gate("hold")
    desk.push(reply("Never ", "ends.").insert(gate, after="text_delta"))
    ask(nvim)
    nvim.lua("Drive.shown('Never')")
    nvim.lua("vim.cmd.Standfast('stop') Drive.shown('Stopped.')")
    gate.release()


def test_two_neovims_on_one_session_show_the_same_and_one_answer_is_enough(
    desk: Desk,
) -> None:
    desk.push(reply(tools=[tool("apply_patch", patch=PATCH)]), reply("Done."))
    one, two = desk.nvim, desk.another()
    two.lua("vim.ui.select = function(_, _, choose) Choose = choose end")
    ask(one)
    two.lua("Drive.wait(function() return Choose end, 'the question there')")
    assert two.lua("return #vim.api.nvim_list_tabpages()") == 2
    one.lua("Drive.wait(function() return #Drive.asked > 0 end, 'the question here')")
    one.lua("Drive.answer('Answer: ', 'Allow') vim.cmd.Standfast('review')")
    for nvim in (one, two):
        nvim.lua("Drive.shown('Done.')")
    assert two.lua("return { #vim.api.nvim_list_tabpages(), #require('standfast.permission').open() }") == [1, 0]
    two.lua("Choose({ decision = 'deny' })")
    assert "answered elsewhere" in two.lua("return Drive.heard('answered elsewhere')")
    assert lines(one) == lines(two)
    hashes = [nvim.lua("return vim.tbl_map(function(e) return e.hash end, Drive.view().events)") for nvim in (one, two)]
    assert hashes[0] == hashes[1]


def test_the_chat_pages_back_to_the_beginning_of_a_long_history(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply("I look.", tools=[tool("read_file", path="a.py") for _ in range(70)]), reply("All read."))
    ask(nvim, "The first question.")
    nvim.lua("Drive.shown('All read.')")
    whole = [line for line in lines(nvim) if line]
    second = desk.another()
    second.lua("Drive.shown('All read.')")
    assert "The first question." not in lines(second)
    second.lua(
        "vim.cmd.stopinsert() Reader = vim.fn.bufwinid(select(2, Drive.chat())) vim.api.nvim_set_current_win(Reader)"
    )
    second.lua("vim.cmd.normal({ args = { 'gp' }, bang = false }) Drive.shown('The first question.')")
    assert [line for line in lines(second) if line] == whole


def test_a_key_is_handed_to_the_daemon_and_kept_nowhere_else(desk: Desk) -> None:
    nvim = desk.nvim
    nvim.lua("vim.fn.inputsecret = function() return ' sk-secret-1 ' end vim.cmd.Standfast('login')")
    nvim.lua("Drive.heard('the key is stored')")
    kept = [path for path in desk.home.rglob("*") if path.is_file() and b"sk-secret-1" in path.read_bytes()]
    assert [(path.name, oct(path.stat().st_mode & 0o777)) for path in kept] == [("credentials.json", "0o600")]
    nvim.lua(
        "vim.fn.inputsecret = function() return key end Drive.said = {} vim.cmd.Standfast('login') Drive.heard('is stored')",
        key=desk.api.key,
    )


def test_sessions_are_chosen_from_a_list_and_take_over_the_same_windows(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply("In the first."))
    ask(nvim, "The first session")
    nvim.lua("Drive.shown('In the first.')")
    nvim.lua("Drive.open_chat({ new = true })")
    assert "In the first." not in lines(nvim)
    windows = nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)")
    nvim.lua("Drive.answer('The first session') vim.cmd.Standfast('sessions') Drive.shown('In the first.')")
    assert nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == windows == 3
    assert "succeeded" in nvim.lua("return Drive.asked[#Drive.asked].labels[2]")


def test_an_unknown_subcommand_names_the_known_ones(desk: Desk) -> None:
    desk.nvim.lua("vim.cmd.Standfast('dance')")
    said = desk.nvim.lua("return Drive.heard('no subcommand')")
    for name in ("chat", "sessions", "resume", "stop", "review", "queue", "login", "log", "trust"):
        assert name in said
    assert desk.nvim.lua("return vim.fn.getcompletion('Standfast re', 'cmdline')") == ["restart", "resume", "review"]
