"""The subcommands that a person seldom uses, and the message box's own help: goal, compact, trust, log, `@`, earlier messages."""

from __future__ import annotations

from editors.neovim.conftest import Desk
from editors.neovim.instance import Nvim
from fake_api import reply, tool
from fake_api.requests import Request
from support import open_editor


def said_to_model(request: Request) -> str:
    return "\n".join(block.get("text", "") for message in request.messages for block in message["content"])


def type_into_box(nvim: Nvim, keys: str) -> str:
    """Real keys, in the message box; returns what then stands there."""
    nvim.lua(
        "vim.api.nvim_set_current_win(vim.fn.bufwinid((Drive.box()))) vim.cmd.stopinsert()"
        " vim.api.nvim_feedkeys(vim.keycode(keys), 'xt', false)",
        keys=keys,
    )
    return nvim.lua("return vim.trim(table.concat(vim.api.nvim_buf_get_lines((Drive.box()), 0, -1, false), '\\n'))")


def test_a_goal_goes_on_by_itself_until_the_agent_says_that_it_is_reached(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("update_goal", status="complete", reason="no test fails")]), reply("It is reached."))
    nvim.lua("vim.cmd('Standfast goal all tests pass') Drive.shown('It is reached.')")
    shown = nvim.lua("return (Drive.chat())")
    told = [line for line in shown if "Goal (" in line]
    assert [line[line.index("Goal") :] for line in told] == [
        "Goal (active): all tests pass",
        "Goal (reached): all tests pass",
    ]
    assert "all tests pass" in said_to_model(desk.api.requests[-1])


def test_a_goal_that_is_there_is_offered_to_be_changed_or_taken_away(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply(tools=[tool("update_goal", status="blocked", reason="no network")]), reply("I need you."))
    nvim.lua("vim.cmd('Standfast goal fetch it') Drive.shown('I need you.')")
    nvim.lua("Drive.answer('Take away') vim.cmd.Standfast('goal') Drive.shown('The goal was taken away.')")
    assert nvim.lua("return Drive.asked[#Drive.asked].labels") == ["Go on", "Change", "Reached", "Take away"]
    nvim.lua("vim.ui.input = function(options, done) Prompt = options.prompt done('  ') end vim.cmd.Standfast('goal')")
    assert "Goal" in nvim.lua("return Drive.wait(function() return Prompt end, 'the question')")


def test_the_history_is_summarised_when_told_and_stays_whole(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply("The first answer."))
    nvim.lua("Drive.send('the first question') Drive.shown('The first answer.')")
    nvim.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    desk.push(reply("Both greeted each other."))
    nvim.lua("vim.cmd.Standfast('compact') Drive.heard('none of it was deleted')")
    nvim.lua("Drive.shown('was summarised for the model')")
    assert "the first question" in nvim.lua("return (Drive.chat())")


def test_a_folder_is_trusted_only_by_the_persons_choice(desk: Desk) -> None:
    nvim = desk.nvim
    nvim.lua(
        "Told = {} local client = require('standfast.client') local request = client.request"
        " client.request = function(connection, method, params, callback)"
        " if method == 'workspace/trust' then local own = callback callback = function(err, result)"
        " Told[#Told + 1] = { params.trusted, err and err.reason or 'answered' } if own then own(err, result) end end end"
        " return request(connection, method, params, callback) end"
    )
    nvim.lua("vim.cmd.Standfast('trust')")
    nvim.lua("Drive.answer('Do not trust') vim.cmd.Standfast('trust') Drive.wait(function() return Told[1] end, 'it')")
    nvim.lua("Drive.answer('Trust') vim.cmd.Standfast('trust') Drive.wait(function() return Told[2] end, 'it')")
    assert nvim.lua("return Told") == [[False, "answered"], [True, "answered"]]
    asked = nvim.lua("return Drive.asked[1]")
    assert asked["labels"] == ["Trust", "Do not trust"]
    assert str(desk.workspace) in asked["prompt"]


def test_the_logs_open_below_each_other(desk: Desk) -> None:
    nvim = desk.nvim
    nvim.lua("vim.cmd.Standfast('log')")
    names = nvim.lua(
        "return vim.tbl_map(function(w) return vim.fs.basename(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(w))) end,"
        " vim.api.nvim_tabpage_list_wins(0))"
    )
    nvim.lua("vim.cmd.tabclose()")
    assert names == ["daemon.log", "lsp.log"]


def test_an_at_sign_completes_files_of_the_project(desk: Desk) -> None:
    (desk.workspace / "money.py").write_text("cents = 1\n")
    assert type_into_box(desk.nvim, "alook at @mon<C-y> please") == "look at @money.py please"


def test_earlier_messages_come_back_and_the_draft_after_them(desk: Desk) -> None:
    nvim = desk.nvim
    for text in ("the older one", "the newer one"):
        desk.push(reply(f"Read: {text}."))
        nvim.lua("Drive.send(text) Drive.shown('Read: ' .. text)", text=text)
        nvim.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    type_into_box(nvim, "amy draft<Up>")
    holds = "Drive.wait(function() return vim.api.nvim_buf_get_lines((Drive.box()), 0, -1, false)[1] == text end, text)"
    nvim.lua(holds, text="the newer one")
    assert type_into_box(nvim, "a<Up>") == "the older one"
    assert type_into_box(nvim, "a<Down>") == "the newer one"
    assert type_into_box(nvim, "a<Down>") == "my draft"
    type_into_box(nvim, "cc")


async def test_a_session_that_is_deleted_elsewhere_says_so_and_keeps_what_was_said(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply("Here I am."))
    nvim.lua("Drive.send('are you there') Drive.shown('Here I am.')")
    nvim.lua("Drive.wait(function() return Drive.view().run.status == 'succeeded' end, 'the end')")
    session_id = nvim.lua("return Drive.view().sessionId")
    async with open_editor(desk.home) as other:
        await other.request("standfast/session/delete", {"sessionId": session_id})
    nvim.lua("Drive.wait(function() return Drive.view().deleted end, 'the news')")
    bars = nvim.lua(
        "return vim.tbl_map(function(window)"
        " return vim.api.nvim_eval_statusline(vim.wo[window].winbar, { winid = window }).str"
        " end, vim.api.nvim_list_wins())"
    )
    assert [bar for bar in bars if " · deleted" in bar]
    assert "Here I am." in "\n".join(nvim.lua("return (Drive.chat())"))


def test_a_chat_is_named_by_its_title_and_two_of_one_title_are_told_apart(desk: Desk) -> None:
    nvim = desk.nvim
    chats = (
        "return vim.tbl_filter(function(name) return vim.startswith(name, 'standfast://chat/') end,"
        " vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs()))"
    )
    nvim.lua("Drive.open_chat({ new = true })")
    first, second = nvim.lua(chats)
    session = nvim.lua("return Drive.view().sessionId")
    assert [first, second] == ["standfast://chat/Untitled", f"standfast://chat/Untitled ({session})"]
    desk.push(reply("It is mended."))
    nvim.lua("Drive.send('Mend src/a.py') Drive.shown('It is mended.')")
    assert nvim.lua(chats) == [first, "standfast://chat/Mend src∕a.py"]  # and the old name left no buffer behind


def test_a_chat_whose_history_was_wiped_out_opens_again_with_what_was_being_written(desk: Desk) -> None:
    nvim = desk.nvim
    desk.push(reply("Here I am."))
    nvim.lua("Drive.send('Hello') Drive.shown('Here I am.')")
    nvim.lua("vim.api.nvim_buf_set_lines(Drive.box(), 0, -1, false, { 'half a thought' })")
    nvim.lua("vim.cmd.stopinsert() vim.api.nvim_buf_delete(select(2, Drive.chat()), { force = true })")
    nvim.lua("vim.cmd.Standfast('chat') Drive.shown('Here I am.')")
    boxes = "vim.tbl_filter(function(b) return vim.bo[b].filetype == 'standfast-message' end, vim.api.nvim_list_bufs())"
    assert nvim.lua(
        f"return vim.tbl_map(function(b) return vim.api.nvim_buf_get_lines(b, 0, -1, false) end, {boxes})"
    ) == [["half a thought"]]
