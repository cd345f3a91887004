"""A real workspace with a spool, and the way to call a tool in it as the run loop does."""

from __future__ import annotations

import secrets
from pathlib import Path

from standfast.events.types import Intent
from standfast.files.buffers import NoBuffers
from standfast.process.launch import Commands
from standfast.tools.base import Outcome, Plan, StartedCall, Tool, ToolContext

RUN = f"op_{secrets.token_hex(8)}"
"""Begins every operation id of this test process: what is left of a failed test can be found and ended."""


def new_mark() -> str:
    """An operation id of its own, to be found in the environment of all processes of one command."""
    return f"{RUN}_{secrets.token_hex(4)}"


def processes_with(mark: str) -> list[int]:
    """The living processes whose environment carries a mark."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Place:
    """A workspace, a spool and the way to call a tool as the run loop does."""

    def __init__(self, base: Path, commands: Commands) -> None:
        self.workspace = base / "workspace"
        self.spool = base / "state" / "commands"
        self.workspace.mkdir(parents=True)
        self.commands = commands
        self.mark = new_mark()
        self.shown: list[str] = []
        self.calls = 0

    def context(self, call_id: str | None = None, *, trusted: bool = False) -> ToolContext:
        self.calls += 1

        async def show(text: str) -> None:
            self.shown.append(text)

        return ToolContext(
            workspace=self.workspace,
            spool=self.spool,
            session_id="ses_1",
            call_id=call_id or f"call_{self.calls}",
            operation_id=f"{self.mark}_{self.calls}",
            buffers=NoBuffers(),
            output=show,
            trusted=trusted,
        )

    async def call(self, tool: Tool, ctx: ToolContext | None = None, **args: object) -> Outcome:
        """plan, then run."""
        context = ctx or self.context()
        wanted = tool.Args.model_validate(args)
        plan = await tool.plan(wanted, context)
        return plan if isinstance(plan, Outcome) else await tool.run(wanted, plan, context)

    @staticmethod
    def started(ctx: ToolContext, plan: Plan, args: dict[str, object]) -> StartedCall:
        """The call as the log would have it after a crash."""
        intents = tuple(Intent.model_validate(intent.model_dump(by_alias=True)) for intent in plan.intents)
        return StartedCall(ctx.call_id, ctx.operation_id, args, intents)
