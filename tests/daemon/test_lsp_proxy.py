"""`standfast lsp`: light, exact in how it ends, never left over (d13, d17, d22)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from standfast.cli.client import frame
from support import RunningDaemon, environment, open_editor
from support.editor import LSP

INITIALIZE = frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
SHUTDOWN = frame({"jsonrpc": "2.0", "id": 2, "method": "shutdown"})
EXIT = frame({"jsonrpc": "2.0", "method": "exit"})
HEAVY = {"pygls", "lsprotocol", "pydantic", "anthropic", "typer", "rich", "orjson", "asyncio", "pythonjsonlogger"}


def lsp(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(LSP, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def say(process: subprocess.Popen[bytes], *pieces: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(pieces))
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> dict[str, object]:
    """The next response (notifications are skipped)."""
    assert process.stdout is not None
    while True:
        length = 0
        while line := process.stdout.readline().strip():
            if line.lower().startswith(b"content-length"):
                length = int(line.split(b":")[1])
        message = json.loads(process.stdout.read(length))
        if "id" in message and "method" not in message:
            return message


@pytest.mark.scenario("d22")
@pytest.mark.parametrize(
    ("goodbye", "closes", "code"),
    [((SHUTDOWN, EXIT), False, 0), ((EXIT,), False, 1), ((), True, 1), ((SHUTDOWN,), True, 0)],
    ids=["shutdown-exit", "exit-only", "closed-pipe", "shutdown-closed-pipe"],
)
def test_it_ends_as_the_editor_left(
    shared_daemon: RunningDaemon, goodbye: tuple[bytes, ...], closes: bool, code: int
) -> None:
    process = lsp(shared_daemon.home)
    say(process, INITIALIZE)
    assert hear(process)["id"] == 1
    say(process, *goodbye)
    assert process.stdin is not None
    if closes:
        process.stdin.close()
    assert process.wait(5) == code
    assert shared_daemon.process.poll() is None
    process.stdin.close()
    assert process.stdout is not None
    process.stdout.close()


def test_it_ends_with_1_when_the_daemon_is_lost(daemon: RunningDaemon) -> None:
    process = lsp(daemon.home)
    say(process, INITIALIZE)
    hear(process)
    daemon.kill()
    assert process.wait(2) == 1
    process.communicate()


@pytest.mark.scenario("d13")
def test_it_ends_when_the_editor_is_killed_although_the_pipe_stays_open(shared_daemon: RunningDaemon) -> None:
    """A child of the editor may hold the pipe; `initialize.processId` says whose life counts."""
    stand_in = subprocess.Popen(["sleep", "60"])
    process = lsp(shared_daemon.home)
    params = {"processId": stand_in.pid, "capabilities": {}}
    say(process, frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
    hear(process)
    stand_in.kill()
    stand_in.wait()
    assert process.wait(30) == 1
    assert shared_daemon.process.poll() is None
    process.communicate()


def test_it_loads_nothing_heavy(home: Path) -> None:
    """120 ms to an answered initialize leave no room for libraries (performance.md "Process")."""
    code = "import sys, standfast.daemon.lsp_proxy, standfast.__main__; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(home)
    )
    assert HEAVY & {name.split(".")[0] for name in found.stdout.split()} == set()


def test_a_daemon_that_cannot_start_is_an_answer_not_a_crash(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("in the way")
    process = lsp(home)
    say(process, INITIALIZE)
    answer = hear(process)
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["data"]["reason"] in ("PlaceNotUsable", "PlaceNotPrivate")
    assert "STANDFAST_HOME" in error["message"]
    assert process.wait(5) == 1
    process.communicate()


async def test_a_large_message_passes_in_both_directions(shared_daemon: RunningDaemon) -> None:
    async with open_editor(shared_daemon.home) as editor:
        with pytest.raises(Exception, match="not"):
            await editor.request("standfast/nothing", {"text": "ü" * 3_000_000})
        assert await editor.request("standfast/daemon/status", {})


async def test_an_editor_that_does_not_read_blocks_nobody_but_itself(shared_daemon: RunningDaemon) -> None:
    stuck = lsp(shared_daemon.home)
    os.kill(stuck.pid, signal.SIGSTOP)
    try:
        async with open_editor(shared_daemon.home) as editor:
            assert await editor.request("standfast/daemon/status", {})
    finally:
        os.kill(stuck.pid, signal.SIGCONT)
    stuck.communicate()


@pytest.mark.scenario("d17")
def test_what_a_library_prints_never_reaches_the_wire(home: Path) -> None:
    """Both processes claim the wire at their start and point fd 1 at stderr."""
    code = (
        "import os, sys\n"
        "from standfast.daemon import lsp_proxy, harden\n"
        "wire = lsp_proxy._claim_stdout()\n"
        "print('debug', flush=True); os.system('echo from a child')\n"
        "os.write(wire, b'wire')\n"
        "harden.guard_stdio(); print('more', flush=True)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment(home))
    assert ran.stdout == b"wire"
    assert ran.stderr.split() == [b"debug", b"from", b"a", b"child", b"more"]
