"""The README of the Neovim client followed to the letter, in a new home (issue E, "What must be shown" 7)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from editors.neovim.instance import PLUGIN, find_nvim
from fake_api import FakeApi
from support import RunningDaemon, environment


def shell_steps(plugin: Path) -> str:
    """The one block of shell of the README, with the place of the checkout filled in."""
    [block] = re.findall(r"```sh\n(.*?)```", (plugin / "README.md").read_text(), re.DOTALL)
    return block.replace("/path/to/standfast/editor-clients/neovim", str(plugin))


def test_the_install_steps_give_a_working_chat_and_a_healthy_checkhealth(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi, tmp_path: Path
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    plugin = shutil.copytree(PLUGIN, tmp_path / "checkout" / "neovim")
    program = find_nvim()
    assert program is not None
    env = {name: value for name, value in environment(daemon.home).items() if not name.startswith("XDG_")}
    env |= {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{env['PATH']}",
        "ANTHROPIC_API_KEY": fake_api.key,
    }
    assert shutil.which("standfast", path=env["PATH"])
    subprocess.run(["sh", "-e", "-c", shell_steps(plugin)], env=env, check=True)
    steps = [
        "lua vim.wait(20000, function() return vim.lsp.get_clients({ name = 'standfast' })[1] ~= nil end)",
        "Standfast",
        "lua vim.wait(20000, function() return vim.bo.filetype == 'standfast-message' end)",
        "lua io.stdout:write('FILETYPE ' .. vim.bo.filetype .. '\\n')",
        "stopinsert",
        "checkhealth standfast",
        "lua io.stdout:write(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n') .. '\\n')",
        "help standfast-recovery",
        "lua io.stdout:write('HELP ' .. vim.fn.expand('%:t') .. '\\n')",
        "qall!",
    ]
    words = [word for step in steps for word in ("-c", step)]
    done = subprocess.run(
        [program, "--headless", "a.py", *words],
        cwd=workspace,
        env=env,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    said = done.stdout
    assert "FILETYPE standfast-message" in said, done.stderr
    assert "HELP standfast.txt" in said, done.stderr
    assert "the daemon is running" in said
    assert "speaks protocol 1, as this plugin does" in said
    assert f"{workspace}: ready" in said
    assert "ERROR" not in said
    assert "WARNING" not in said
