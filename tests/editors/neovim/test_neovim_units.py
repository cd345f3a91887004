"""The pure parts of the Neovim client, checked in Neovim's own Lua; and that the plugin is whole: help, health, lint."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from editors.neovim.instance import HERE, PLUGIN, find_nvim, variables


def test_text_streams_folds_and_lists_are_right(tmp_path: Path) -> None:
    program = find_nvim()
    assert program is not None
    done = subprocess.run(
        [program, "--clean", "--headless", "-u", "NONE", "-l", str(HERE / "units.lua")],
        env=variables(tmp_path, {}, {}), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_every_subcommand_setting_and_key_is_in_the_help(tmp_path: Path) -> None:
    program = find_nvim()
    assert program is not None
    words = (
        "local found = {} local function settings(of, prefix) for name, value in pairs(of) do"
        " if type(value) == 'table' and not vim.islist(value) and next(value) then settings(value, prefix .. name .. '.')"
        " else table.insert(found, prefix .. name) end end end"
        " settings(require('standfast.config').get(), '')"
        " io.write(vim.json.encode({ settings = found, commands = require('standfast.commands').names() }))"
    )
    done = subprocess.run(
        [program, "--clean", "--headless", "-u", "NONE", "--cmd", f"set rtp^={PLUGIN}", "-c", f"lua {words}", "-c", "q"],
        env=variables(tmp_path, {}, {}), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    help_ = (PLUGIN / "doc" / "standfast.txt").read_text()
    names = json.loads(done.stdout)
    for name in names["commands"]:
        assert f"*:Standfast-{name}*" in help_, name
    for name in names["settings"]:
        assert f"*standfast.{name}*" in help_, name
    for line in help_.splitlines():
        assert len(line) <= 78, line
    tags = re.findall(r"\*(\S+)\*", help_)
    assert len(tags) == len(set(tags))
    for link in re.findall(r"\|(standfast\S*|:Standfast\S*)\|", help_):
        assert link in tags, link


def test_public_functions_say_what_they_take_and_return() -> None:
    for path in sorted((PLUGIN / "lua" / "standfast").glob("*.lua")):
        code = path.read_text().splitlines()
        for at, line in enumerate(code):
            if match := re.match(r"function M\.(\w+)\(([^)]*)\)", line):
                notes = []
                above = at - 1
                while above >= 0 and code[above].startswith("--"):
                    notes.append(code[above])
                    above -= 1
                where = f"{path.name}:{at + 1} {match[1]}"
                assert notes, f"{where} has no comment"
                for name in filter(None, (each.strip() for each in match[2].split(","))):
                    assert any(re.search(rf"@param {name}\b", note) for note in notes), f"{where} does not type {name}"


@pytest.mark.skipif(shutil.which("luacheck") is None, reason="NOT RUN: luacheck is missing (Debian: lua-check)")
def test_luacheck_finds_nothing() -> None:
    done = subprocess.run(
        ["luacheck", ".", "-q", "--no-color"], cwd=PLUGIN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
