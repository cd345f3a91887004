"""`process`: the background commands of a session: list, poll, write, stop (R12.2). Answers from their records, never from
memory, so that they are the same after a restart or an upgrade of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from standfast.events.types import Intent, Target
from standfast.process import record as records
from standfast.process.judge import State, look
from standfast.process.launch import Commands
from standfast.process.output import Polled, poll
from standfast.process.ports import listening
from standfast.tools.base import Effect, Outcome, Plan, Settlement, StartedCall, ToolContext, Verification
from standfast.tools.commands_base import digest, evidence, not_available, outcome_of, visible

POLL_MAX = 24_000
"""Characters of new output in one answer; of more, the newest."""
UNKNOWN = "There is no background process {} in this session. Nothing was done. Use action list."


class ProcessArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    action: Literal["list", "poll", "write", "stop"]
    process_id: str | None = Field(None, description="From run_command with background: true (all but list).")
    input: str | None = Field(None, description="For write: goes to the process as it is; end lines with a newline.")


class ProcessTool:
    """The tool. `commands` is the daemon's own set of living commands."""

    name = "process"
    description = (
        "Look after background commands: list (pid, state, ports), poll (output since the last poll, exit code, ports), "
        "write (give it input), stop (end it and all its children)."
    )
    effect: Effect = "command"
    Args: type[BaseModel] = ProcessArgs

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    async def plan(self, args: ProcessArgs, ctx: ToolContext) -> Plan | Outcome:
        if args.action == "list":
            return Plan(effect="read", summary="List background processes")
        found = await asyncio.to_thread(_find, ctx.spool, ctx.session_id, args.process_id)
        if found is None:
            return Outcome("error", UNKNOWN.format(visible(str(args.process_id))), reason="ProcessNotFound")
        directory, record = found
        command = visible(record.command)
        if args.action == "poll":
            return Plan(effect="read", summary=f"Read the output of {command}", state=directory)
        if args.action == "write" and not args.input:
            return Outcome("error", "write needs `input`. Nothing was done.")
        intent = {"action": args.action, "command": record.command, "cwd": record.cwd, "processRecord": directory.name}
        what = "Stop" if args.action == "stop" else f"Write {visible(args.input or '')!r} to"
        return Plan(
            effect="command",
            summary=f"{what} {command}",
            digest=digest("process", args.action, directory.name, record.command, args.input),
            intents=(Intent.model_validate({"kind": "process", **intent}),),
            state=directory,
        )

    async def run(self, args: ProcessArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        if args.action == "list":
            return await self._list(ctx)
        directory: Path = plan.state
        if args.action == "poll":
            return await self._poll(directory)
        if args.action == "stop":
            state = await self.commands.stop(directory)
            ended = await outcome_of(state, directory)
            return Outcome("ok", f"Stopped with all its children.\n{ended.content}", exit_code=ended.exit_code)
        return await self._write(directory, args.input or "")

    async def _list(self, ctx: ToolContext) -> Outcome:
        found = await asyncio.to_thread(_all, ctx.spool, ctx.session_id)
        lines = [await self._line(directory) for directory, _ in found]
        return Outcome("ok", "\n".join(lines) or "No background process was started in this session.")

    async def _line(self, directory: Path) -> str:
        state = await self.commands.state(directory)
        return f"{directory.name}: {visible(state.record.command if state.record else '')}\n  {await _state(state)}"

    async def _poll(self, directory: Path) -> Outcome:
        state = await self.commands.state(directory)
        polled = await asyncio.to_thread(_new_output, directory)
        skipped = f"[… {polled.skipped} bytes of older output left out …]\n" if polled.skipped else ""
        text = f"{skipped}{polled.text}" if polled.text else "(no new output)"
        code = state.exit.code if state.exit else None
        return Outcome("ok", f"{text.rstrip(chr(10))}\n[{await _state(state)}]", exit_code=code)

    async def _write(self, directory: Path, text: str) -> Outcome:
        state = await self.commands.state(directory)
        supervised = self.commands.held(directory)
        if supervised is None:
            return Outcome("error", f"Nothing was written: {await _state(state)}", reason="ProcessEnded")
        data = text.encode("utf-8", "replace")
        taken = supervised.write(data)
        if taken < len(data):
            why = f"Only the first {taken} of {len(data)} bytes were taken: it does not read its input. Poll it first."
            return Outcome("error", why, reason="ProcessBusy")
        return Outcome("ok", f"{taken} bytes written. Poll for what it answers.")

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """A stop shows in the record. Whether input arrived, nobody can tell."""
        directory, action, command = _target(call, ctx)
        state = await self.commands.state(directory)
        if action == "stop":
            gone = state.found in ("ended", "lost", "never_begun")
            outcome = await outcome_of(state, directory) if gone else None
            verdict = "applied" if gone else "not_applied"
            if not gone:
                outcome = Outcome("cancelled", "The process was not stopped: it is still running.")
            return Verification(verdict, (Target(command=command, verdict=verdict),), evidence(state), outcome)
        text = "Whether the input reached the process cannot be seen. It is not sent again."
        return Verification("unknown", (Target(command=command, verdict="unknown"),), text)

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """`complete` a stop, or `stop` the process; input is never sent again."""
        directory, wanted, command = _target(call, ctx)
        if action != "stop" and not (action == "complete" and wanted == "stop"):
            raise not_available(action, "input that was sent cannot be taken back and is not sent again.")
        state = await self.commands.stop(directory)
        verdict = "applied" if wanted == "stop" else "finished"
        return Settlement(verdict, evidence(state), targets=(Target(command=command, verdict=verdict),))


async def _state(state: State) -> str:
    """One line: pid, since when or how it ended, ports."""
    if state.found == "running" and state.record is not None:
        ports = await asyncio.to_thread(listening, state.record)
        on = f", listens on {', '.join(ports)}" if ports else ""
        return f"running, pid {state.record.process.pid}{on}"
    if state.exit is not None:
        pid = f"pid {state.record.process.pid}, " if state.record else ""
        return f"ended, {pid}exit code {state.exit.code}, {state.exit.why}"
    return evidence(state)


def _new_output(directory: Path) -> Polled:
    """What was printed since the last poll; remembers how far it got beside the record, also for the next daemon."""
    place = str(directory)
    polled = poll(directory / records.OUTPUT, records.read_cursor(place), characters_max=POLL_MAX)
    records.put_cursor(place, polled.offset)
    return polled


def _all(spool: Path, session_id: str) -> list[tuple[Path, records.Record]]:
    """The session's background commands, oldest first."""
    found: list[tuple[Path, records.Record]] = []
    for directory in spool.iterdir() if spool.is_dir() else ():
        with contextlib.suppress(records.LaterVersion, OSError):
            record = look(directory).record
            if record is not None and record.background and record.session_id == session_id:
                found.append((directory, record))
    return sorted(found, key=lambda pair: pair[1].started_at_ms)


def _find(spool: Path, session_id: str, process_id: str | None) -> tuple[Path, records.Record] | None:
    """By name among the session's own: a process id is never made into a path."""
    return next((pair for pair in _all(spool, session_id) if pair[0].name == process_id), None)


def _target(call: StartedCall, ctx: ToolContext) -> tuple[Path, str, str]:
    """(record directory, action, command) of a started call."""
    intent: dict[str, Any] = call.intents[0].model_dump(by_alias=True)
    name = Path(str(intent["processRecord"])).name
    return ctx.spool / name, str(intent["action"]), str(intent["command"])
