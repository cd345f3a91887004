"""Daemons for tests: each in its own STANDFAST_HOME, a child of the test, ended by its own process id."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standfast.daemon import lock
from standfast.daemon.spawn import Spawner
from standfast.places import Places, find_places

START_S = 90.0
"""Generous: what fails says so at once, and a machine that does much else takes half a minute for what is a second's work."""
END_S = 15.0
DAEMON = (sys.executable, "-P", "-m", "standfast", "daemon", "run")
DROPPED = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "FAILPOINTS",
    "PYTHONDONTWRITEBYTECODE",  # a person's daemon does not compile itself at each start, which costs three seconds
)  # fmt: skip


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's environment, without what would reach the real world, with `home` as the place of everything."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**kept, "STANDFAST_HOME": str(home), "HOME": str(home), **more}


def places(home: Path) -> Places:
    return find_places({"STANDFAST_HOME": str(home)})


def configure(home: Path, **sections: Mapping[str, Any]) -> None:
    """Write the user's config.toml: `configure(home, model={"base_url": api.url}, daemon={"idle_exit_s": 1})`.

    Whatever sandbox a machine has is good enough for a test that does not say otherwise: so that none waits for an answer.
    """
    lines: list[str] = []
    for section, values in {"sandbox": {"level": "none"}, **sections}.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    (home / "config.toml").write_text("\n".join(lines) + "\n")


_started: list[RunningDaemon] = []
"""For `end_daemon`: a test that fails leaves none behind."""


@dataclass(slots=True)
class RunningDaemon:
    """A daemon that answers. `process` is the test's own child."""

    home: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait(END_S)

    def end(self) -> int:
        """SIGTERM; returns its exit code."""
        self.process.terminate()
        return self.process.wait(END_S)

    async def exited(self) -> int:
        """Wait until it ends by itself (an idle exit, a failpoint)."""
        return await asyncio.to_thread(self.process.wait, START_S)


def start_daemon(
    home: Path, env: Mapping[str, str] | None = None, *, umask: int = -1, under: Sequence[str] = ()
) -> RunningDaemon:
    """Start a daemon and wait until its socket answers. Raises AssertionError with what it said instead.

    `env` is added to `environment(home)`; `umask`: with another one than the test's own; `under`: a command that becomes it
    (`unshare …`).
    """
    ready, report = os.pipe()
    home.mkdir(exist_ok=True)
    if not (home / "config.toml").exists():
        configure(home)
    with (home / "daemon.err").open("ab") as err:
        process = subprocess.Popen(
            [*under, *DAEMON, "--report", str(report)], env={**environment(home), **(env or {})}, pass_fds=(report,),
            stdin=subprocess.DEVNULL, stdout=err, stderr=err, cwd="/",
            umask=umask,
        )  # fmt: skip
    os.close(report)
    try:
        said = os.read(ready, 4096) if select.select([ready], [], [], START_S)[0] else b"(nothing)"
    finally:
        os.close(ready)
    if said != b"ready\n":
        process.kill()
        process.wait()
        raise AssertionError(f"the daemon said {said.decode()!r}; stderr:\n{(home / 'daemon.err').read_text()}")
    running = RunningDaemon(home, process)
    _started.append(running)
    return running


def end_daemon(home: Path) -> None:
    """End whatever daemon serves this home, also one that a `standfast lsp` started."""
    for running in [one for one in _started if one.home == home]:
        _started.remove(running)
        if running.process.poll() is None:
            running.kill()
    here = places(home)
    with contextlib.suppress(Exception):
        Spawner.of(environment(home)).stop()
    if here.state.exists() and lock.held(here.lock):
        pid = lock.signature(here.lock).get("pid")
        if isinstance(pid, int):
            os.kill(pid, signal.SIGKILL)
