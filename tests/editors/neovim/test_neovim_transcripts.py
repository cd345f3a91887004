"""The conformance transcripts with Neovim in the client's place (issue E, "What must be shown" 4)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from editors.neovim.conftest import project
from editors.neovim.instance import Nvim, headless
from editors.through import Through
from protocol.player import FILES, Player, steps_of
from standfast.daemon import lock
from support import configure, end_daemon
from support.daemon import places
from wire.raw import Json

TAP = Path(__file__).parents[1] / "tap.py"
PLAYED = [path for path in FILES if path.stem != "handshake"]
"""`handshake` says what no client of ours ever says: the wrong version, requests before `initialize`."""
ANSWERS = {"allow": "Allow", "allowSession": "Allow for this session", "deny": "Deny"}
HERE = "local root = require('standfast.client').root_of() "


@dataclass
class Person:
    """Makes Neovim say what a transcript wants."""

    nvim: Nvim

    def ask(self, method: str, params: Json) -> None:
        self.nvim.lua(
            HERE + "local client = require('standfast.client') client.ensure(root, function(connection)"
            " client.request(connection, method, params, function() end) end)",
            method=method.removeprefix("standfast/"),
            params=params,
        )

    def answer(self, answer: Json) -> None:
        """As the person does, after the difference was shown; an error is what a client says that cannot ask."""
        self.nvim.lua("Drive.wait(function() return require('standfast.permission').open()[1] end, 'the question')")
        if "error" in answer:
            self.nvim.lua("require('standfast.permission').open()[1].settle(nil, err)", err=answer["error"])
        else:
            self.nvim.lua(
                "local permission = require('standfast.permission')"
                " Drive.answer(wanted) permission.review(permission.open()[1].permission.callId)"
                " Drive.wait(function() return #Drive.answers == 0 end, 'the answer')",
                wanted=ANSWERS[answer["result"]["decision"]],
            )

    def close(self) -> None:
        self.nvim.lua("require('standfast.client').close()")


@pytest.mark.parametrize("path", PLAYED, ids=[path.stem for path in PLAYED])
async def test_neovim_plays_the_client_of_a_transcript(path: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    configure(home, model={"provider": "scripted"})
    workspace = project(tmp_path / "workspace")

    def kill(signal_number: int) -> None:
        pid = lock.signature(places(home).lock)["pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal_number)

    socket = tmp_path / "tap"
    try:
        with headless(home, workspace, "a.py", cmd=[sys.executable, str(TAP), str(socket)]) as nvim:
            through = Through(Person(nvim), kill)
            async with await through.listen(socket):
                nvim.lua(HERE + "require('standfast.client').restart(root)")
                await Player(through, {"workspace": workspace.as_uri()}).play(steps_of(path))
                await through.rest()
    finally:
        end_daemon(home)
