"""Kill -9 a daemon in the middle of a call, and ask the next one what became of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from process.place import new_mark
from standfast.events.types import Intent
from standfast.files.buffers import NoBuffers
from standfast.tools.base import StartedCall, ToolContext
from support.waiting import until

STAND_IN = Path(__file__).with_name("stand_in.py")


@dataclass
class Crash:
    """One call in a daemon of its own. `mark` is its operation id, found in the environment of all its processes."""

    base: Path
    args: dict[str, object]
    tool: str = "run_command"
    grace_ms: int = 60_000
    failpoints: str = ""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    mark: str = field(default_factory=new_mark)

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def directory(self) -> Path:
        return self.base / "spool" / "call_1"

    async def begin(self) -> None:
        """Start the daemon and the call; returns when its intents count as stored."""
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.daemon = await asyncio.create_subprocess_exec(
            sys.executable,
            str(STAND_IN),
            *(str(self.base), self.tool, json.dumps(self.args), str(self.grace_ms), self.mark),
            env={**os.environ, **self.environ, "FAILPOINTS": self.failpoints},
            stdout=asyncio.subprocess.PIPE,
        )
        assert self.daemon.stdout is not None
        line = await self.daemon.stdout.readline()
        assert line, "the stand-in planned nothing"
        self.intents = tuple(Intent.model_validate(intent) for intent in json.loads(line))

    async def recorded(self) -> None:
        """Wait until the command is about to begin: its record is durable."""
        await until((self.directory / "record.json").exists, "the command's record")

    async def ended(self) -> None:
        """Wait until its exit is recorded."""
        await until((self.directory / "exit.json").exists, "the command's exit record")

    async def kill(self) -> None:
        """SIGKILL, as nobody can prepare for."""
        if self.daemon.returncode is None:
            self.daemon.kill()
        await self.gone()

    async def gone(self) -> None:
        """Wait for the daemon's death (e.g. at a failpoint)."""
        assert self.daemon.stdout is not None
        await self.daemon.stdout.read()
        await self.daemon.wait()

    @property
    def call(self) -> StartedCall:
        return StartedCall("call_1", self.mark, self.args, self.intents)

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            workspace=self.workspace,
            spool=self.base / "spool",
            session_id="ses_1",
            call_id="call_1",
            operation_id=self.mark,
            buffers=NoBuffers(),
        )
