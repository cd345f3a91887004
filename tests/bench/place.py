"""A daemon to measure, its model on loopback, and clients."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from support import RunningDaemon, configure, start_daemon
from support.daemon import places
from wire.raw import Raw, connect_to

SERVER = Path(__file__).parent / "stream_server.py"


@dataclass
class Place:
    """A home with a running daemon and a folder to work in."""

    home: Path
    folder: Path
    daemon: RunningDaemon
    port: int
    """Of the model."""

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.daemon.pid)

    def cpu_s(self) -> float:
        """What the daemon has used so far."""
        times = self.process.cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        return self.process.memory_info().rss / 1e6

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncGenerator[Raw]:
        """Connected, nothing said."""
        async with connect_to(places(self.home).socket) as raw:
            yield raw


@contextlib.contextmanager
def model() -> Iterator[int]:
    """The stream server as a process; its port."""
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextlib.contextmanager
def place(tmp: Path, port: int = 9) -> Iterator[Place]:
    """A daemon in a new home beneath `tmp`, or on the store that lies there already."""
    home, folder = tmp / "home", tmp / "project"
    home.mkdir(mode=0o700, exist_ok=True, parents=True)
    folder.mkdir(exist_ok=True)
    configure(home, model={"base_url": f"http://127.0.0.1:{port}"})
    daemon = start_daemon(home, {"ANTHROPIC_API_KEY": "bench"})
    try:
        yield Place(home, folder, daemon, port)
    finally:
        daemon.kill()
