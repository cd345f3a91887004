"""Neovim with no code of ours, only `vim.lsp.start`: what LSP alone gives (issue D, part 4 and "What must be shown" 6)."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from editors.neovim.conftest import Desk, set_up
from fake_api import Gate, reply, tool

AMBIGUOUS = "*** Begin Patch\n*** Update File: twice.py\n@@\n-x = 0\n+x = 1\n*** End Patch\n"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    with set_up(tmp_path_factory.mktemp("bare"), init="bare.lua") as desk:
        (desk.workspace / "twice.py").write_text("x = 0\nx = 0\n")
        desk.nvim.lua(
            "function Command(name, argument) local client = Drive.wait(function()"
            " return vim.lsp.get_clients({ bufnr = 0 })[1] end, 'the server')"
            " Drive.wait(function() return client.initialized end, 'it')"
            " local answer = client:request_sync('workspace/executeCommand', { command = name, arguments = { argument } }, 20000)"
            " return answer.result or error(vim.inspect(answer)) end"
        )
        assert desk.nvim.lua("return package.loaded['standfast'] == nil and vim.fn.exists(':Standfast') == 0")
        yield desk


def begin(desk: Desk, text: str) -> str:
    """A session and a message by `workspace/executeCommand`; returns the run's id."""
    made = desk.nvim.lua(
        "return Command('standfast.session.create', { workspaceUri = uri })", uri=desk.workspace.as_uri()
    )
    session_id = made["session"]["sessionId"]
    started = desk.nvim.lua(
        "return Command('standfast.run.start', { sessionId = id, text = text })", id=session_id, text=text
    )
    return started["runId"]


def test_a_write_is_asked_by_a_message_request_and_done_after_allow(bare: Desk) -> None:
    bare.push(reply(tools=[tool("write_file", path="new.txt", content="hello\n")]), reply("Done."))
    bare.nvim.lua("Drive.answer('Allow')")
    begin(bare, "write it")
    bare.nvim.lua("Drive.wait(function() return vim.uv.fs_stat('new.txt') end, 'the file')")
    asked = bare.nvim.lua("return Drive.asked[1]")
    assert asked["labels"] == ["Allow", "Deny", "Allow for this session"]
    assert "new.txt" in asked["prompt"]
    assert (bare.workspace / "new.txt").read_text() == "hello\n"


def test_a_conflict_is_a_diagnostic_and_a_code_action_settles_it(bare: Desk) -> None:
    bare.push(reply(tools=[tool("apply_patch", patch=AMBIGUOUS)]), reply("Refused."))
    begin(bare, "change it")
    assert bare.nvim.lua("return Drive.diagnostics('patch-conflict', 'twice.py')")[0][:3] == ["twice.py", 0, 0]
    titles = bare.nvim.lua("return Drive.actions('twice.py', 1)")
    assert "Apply here: line 2" in titles
    bare.nvim.lua("Drive.act('twice.py', 1, 'Apply here: line 2') Drive.cleared('twice.py')")
    assert (bare.workspace / "twice.py").read_text() == "x = 0\nx = 1\n"
    bare.nvim.lua("vim.cmd.checktime() assert(vim.api.nvim_buf_get_lines(0, 1, 2, false)[1] == 'x = 1')")


def test_a_run_reports_progress_and_can_be_cancelled_by_command(bare: Desk) -> None:
    gate = Gate("hold")
    bare.push(reply("Never ", "ends.").insert(gate, after="text_delta"))
    bare.nvim.lua(
        "Progress = {} vim.api.nvim_create_autocmd('LspProgress', { callback = function(a)"
        " table.insert(Progress, a.data.params.value.kind) end })"
    )
    run_id = begin(bare, "go")
    gate.wait()
    bare.nvim.lua("Drive.wait(function() return Progress[1] == 'begin' end, 'progress')")
    run = bare.nvim.lua("return Command('standfast.run.cancel', { runId = id })", id=run_id)["run"]
    assert run["status"] == "cancelled"
    bare.nvim.lua("Drive.wait(function() return vim.list_contains(Progress, 'end') end, 'its end')")
    gate.release()
