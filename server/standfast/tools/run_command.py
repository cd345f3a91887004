"""`run_command`: a command of the shell, in the session's workspace, under a supervisor that outlives the daemon (R12.2).

Each command is a fresh process with a cleared environment and a fixed directory (ATK-32). The shell is bash where there is
one (models write bash), else sh; neither reads start-up files, because BASH_ENV and ENV are not handed on.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from standfast.events.types import Intent
from standfast.process.environment import command_environment
from standfast.process.judge import State
from standfast.process.launch import Commands
from standfast.process.record import Spec
from standfast.tools.base import Effect, Outcome, Plan, Settlement, StartedCall, ToolContext, Verification
from standfast.tools.commands_base import (
    digest,
    follow,
    intent_command,
    not_available,
    outcome_of,
    record_directory,
    start,
    stop_started,
    stopped_for_cancel,
    verification,
    visible,
)
from standfast.tools.confining import Bound, Wish, bound, confined, explained
from standfast.tools.git_inert import inert_environment
from standfast.tools.git_lock import remove_lock, with_lock
from standfast.tools.named_content import named_content

TIMEOUT_S = 600.0
"""Of a command that names none; one in the background has none."""
SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


class RunCommandArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    command: str = Field(min_length=1, max_length=100_000, description="What the shell runs (bash, or sh without it).")
    cwd: str | None = Field(None, description="Directory, relative to the workspace (default: the workspace).")
    timeout_s: float | None = Field(
        None, gt=0, le=86_400, description=f"Seconds until the whole process tree is ended (default {TIMEOUT_S:.0f})."
    )
    background: bool = Field(
        False, description="Return at once with a process_id for the `process` tool, e.g. for a server."
    )
    network: bool = Field(
        False,
        description="Ask the person for the network (a command in the sandbox has none, also no ports that others reach).",
    )
    outside_sandbox: bool = Field(
        False, description="Ask the person to run it without the sandbox. Only for what cannot work within."
    )


class Step(NamedTuple):
    """What `plan` hands to `run`."""

    cwd: Path
    under: Bound


class RunCommand:
    """The tool. `commands` is the daemon's own set of living commands, shared with `process` and `git`."""

    name = "run_command"
    description = (
        "Run a shell command in the workspace and get its output and exit code. Each command is a fresh shell: directory "
        "changes and variables do not carry over. Input is empty; nothing can be asked. Processes that the command leaves "
        "behind are ended with it: use background: true for servers and watchers. Long output is cut in the middle. Where this "
        "machine has a sandbox it runs there: only the workspace can be changed (not .git, nor files that start programs), there is "
        "no network and no home; `network` and `outside_sandbox` ask the person for more, so use them only where needed."
    )
    effect: Effect = "command"
    Args: type[BaseModel] = RunCommandArgs

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    async def plan(self, args: RunCommandArgs, ctx: ToolContext) -> Plan | Outcome:
        if "\0" in args.command or any("\ud800" <= character <= "\udfff" for character in args.command):
            return Outcome("error", "The command contains a character that no shell can take. Nothing was run.")
        cwd = await asyncio.to_thread(_directory, ctx.workspace, args.cwd)
        if isinstance(cwd, Outcome):
            return cwd
        where = "" if cwd == await asyncio.to_thread(ctx.workspace.resolve) else f" (in {visible(str(args.cwd))})"
        named = await asyncio.to_thread(named_content, cwd, args.command)
        under = bound(self.commands, Wish(args.network, args.outside_sandbox))
        bound_to = (args.command, str(cwd), under.level, under.network, named)
        how = under.words + (" in the background" if args.background else "")
        limit = f", at most {args.timeout_s:g} s" if args.timeout_s is not None else ""
        intent = {"command": args.command, "cwd": str(cwd), "record": ctx.call_id, "background": args.background}
        return Plan(
            effect="command",
            summary=f"Run{how}{where}{limit}: {visible(args.command)}",
            digest=digest("run_command", args.timeout_s, args.background, *bound_to),
            intents=(Intent.model_validate({"kind": "command", **intent}),),
            allow_key=f"command:{digest(*bound_to)}",
            risks=under.risks,
            sandbox=under.level,
            state=Step(cwd, under),
        )

    async def run(self, args: RunCommandArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        """Start it and wait for its end. Cancelled: ends the whole tree and returns a `cancelled` outcome that says so."""
        step: Step = plan.state
        directory = ctx.spool / ctx.call_id
        spec = Spec(
            argv=[await asyncio.to_thread(_shell), "-c", args.command],
            command=args.command,
            cwd=str(step.cwd),
            call_id=ctx.call_id,
            session_id=ctx.session_id,
            operation_id=ctx.operation_id,
            background=args.background,
            timeout_ms=_timeout_ms(args),
        )
        try:
            environment = command_environment(self.commands.environ, ctx.operation_id)
            if not ctx.trusted:
                environment |= await asyncio.to_thread(inert_environment, ctx.workspace)
            spec, environment = await confined(self.commands, spec, environment, ctx, step.under)
            started = await start(self.commands, directory, spec, environment)
            if isinstance(started, Outcome):
                return started
            if args.background:
                return await self._in_background(directory, step.under)
            await follow(started, ctx)
            return explained(await outcome_of(await self.commands.wait(directory), directory), step.under)
        except asyncio.CancelledError:
            return await stopped_for_cancel(self.commands, directory)

    async def _in_background(self, directory: Path, under: Bound) -> Outcome:
        """The result of a start: what to call it by. It lives on, held by `commands`."""
        state = await self.commands.state(directory)
        if state.found != "running" or state.record is None:
            return await outcome_of(await self.commands.wait(directory), directory)
        return Outcome(
            "ok",
            f"Started in the background: process_id {directory.name}, pid {state.record.process.pid}. "
            "Use the `process` tool to read its output, write to it, or stop it."
            + (
                ""
                if under.network
                else " It has no network: nobody else reaches its ports. network: true asks for that."
            ),
        )

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """By the record. A living command is adopted, so that its grace time does not end it while people decide."""
        directory = record_directory(call, ctx)
        return await self._judged(await self.commands.state(directory), call, ctx)

    async def wait(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """Wait for a `running` command to end: then `finished` with the real result (or `unknown`: nobody saw it)."""
        return await self._judged(await self.commands.wait(record_directory(call, ctx)), call, ctx)

    @staticmethod
    async def _judged(state: State, call: StartedCall, ctx: ToolContext) -> Verification:
        found = await verification(state, record_directory(call, ctx), intent_command(call.intents))
        return replace(found, evidence=await with_lock(found.evidence, ctx.workspace, state))

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """`stop`, or `removeLock` for an index.lock of its dead git: nothing undoes or repeats a command."""
        if action == "removeLock":
            return await remove_lock(self.commands, call, ctx)
        if action != "stop":
            raise not_available(action, "a command cannot be undone and is never run a second time by itself.")
        return await stop_started(self.commands, call, ctx)


def _directory(workspace: Path, cwd: str | None) -> Path | Outcome:
    """The directory to run in, links resolved; an Outcome where there is none beneath the workspace."""
    root = workspace.resolve()
    if not root.is_dir():
        return Outcome(
            "error", f"The workspace {visible(str(root))} is gone. Nothing was run.", reason="WorkspaceNotFound"
        )
    try:
        found = (root / (cwd or ".")).resolve()
        inside = found.is_relative_to(root) and found.is_dir()
    except (OSError, ValueError):
        inside = False
        found = root
    if inside:
        return found
    return Outcome(
        "error", f"cwd {visible(str(cwd))} is no directory in the workspace. Nothing was run.", reason="BadDirectory"
    )


def _shell() -> str:
    return next((shell for shell in SHELLS if Path(shell).exists()), SHELLS[-1])


def _timeout_ms(args: RunCommandArgs) -> int | None:
    if args.timeout_s is None and args.background:
        return None
    return int((args.timeout_s or TIMEOUT_S) * 1000)
