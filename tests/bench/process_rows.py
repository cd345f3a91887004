"""Starting and memory: the language server, the daemon, a connection, a session."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from bench.measure import Row, at_most, median, python_ms, ratio_at_most
from bench.place import Place, place
from editor.desk import number
from standfast.cli.client import frame
from support import configure, environment, start_daemon

CONNECTIONS = 100
SESSIONS = 200
LSP = [sys.executable, "-P", "-m", "standfast", "lsp"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"processId": None, "rootUri": None, "capabilities": {}},
}


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    empty = python_ms("-c", "pass")
    imports = python_ms("-c", "import pygls.lsp.server")
    colds = [_daemon_start(tmp / f"cold{n}") for n in range(3 if quick else 5)]
    yield Row(
        "start of the daemon, until it answers",
        median(colds),
        "ms",
        "import of pygls",
        imports,
        "≤ 1.4 ×",
        ratio_at_most(1.4),
    )
    with place(tmp / "process") as here:
        yield Row("memory of an idle daemon", here.memory_mb(), "MB", goal="≤ 60 MB", check=at_most(60))
        alone = median([_lsp(here, initialize=False) for _ in range(7)])
        yield Row("standfast lsp, started and ended", alone, "ms", "an empty Python", empty)
        ready = median([_lsp(here, initialize=True) for _ in range(7)])
        yield Row("standfast lsp, until initialize is answered", ready, "ms", "an empty Python", empty)
        yield Row("memory of a connection", await _connections(here), "KB", goal="≤ 120 KB", check=at_most(120))
        yield Row("memory of an attached session", await _sessions(here), "KB")


def _daemon_start(tmp: Path) -> float:
    tmp.mkdir()
    home = tmp / "home"
    home.mkdir(mode=0o700)
    configure(home)
    begin = time.perf_counter()
    daemon = start_daemon(home)
    took = (time.perf_counter() - begin) * 1000
    daemon.kill()
    return took


def _lsp(here: Place, *, initialize: bool) -> float:
    begin = time.perf_counter()
    with subprocess.Popen(LSP, env=environment(here.home), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        if initialize:
            process.stdin.write(frame(HELLO))
            process.stdin.flush()
            process.stdout.readline()
            took = (time.perf_counter() - begin) * 1000
            process.kill()
            return took
        process.stdin.close()
        process.wait()
        return (time.perf_counter() - begin) * 1000


async def _connections(here: Place) -> float:
    async with contextlib.AsyncExitStack() as stack:

        async def open_some(count: int) -> None:
            for _ in range(count):
                raw = await stack.enter_async_context(here.client())
                await raw.initialize([here.folder.as_uri()])
                await raw.ask(number(), "standfast/daemon/status")

        await open_some(5)  # what the first one brings in stays
        before = here.memory_mb()
        await open_some(CONNECTIONS)
        return (here.memory_mb() - before) * 1000 / CONNECTIONS


async def _sessions(here: Place) -> float:
    async with here.client() as raw:
        await raw.initialize()

        async def make(count: int) -> None:
            for _ in range(count):
                made = await raw.ask(number(), "standfast/session/create", {"workspaceUri": here.folder.as_uri()})
                await raw.ask(number(), "standfast/session/attach", {"sessionId": made["session"]["sessionId"]})

        await make(5)
        await asyncio.sleep(3)  # the provider's library comes in meanwhile
        before = here.memory_mb()
        await make(SESSIONS)
        return (here.memory_mb() - before) * 1000 / SESSIONS
