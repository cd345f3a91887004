"""What the tools that start processes share: how a command is shown, how its end is told, what its record says of a crash."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from standfast.errors import NotAvailable
from standfast.events.types import Intent, Target, Verdict
from standfast.process import record as records
from standfast.process.judge import State
from standfast.process.launch import Commands
from standfast.process.output import LiveOutput, excerpt
from standfast.process.supervised import Supervised
from standfast.shortage import want_of
from standfast.tools.base import Outcome, Settlement, StartedCall, ToolContext, Verification

HEAD_MAX, TAIL_MAX = 12_000, 18_000
"""Characters of an output that the model gets: the end matters more."""
LIVE_HEAD_MAX, LIVE_TAIL_MAX = 16_000, 8_000
"""Characters of an output that are shown live and stand in the log."""
LIVE_S = 0.05
"""How long output is collected before it is shown."""
BLOB_MAX = 8 * 1024 * 1024
"""Bytes; a longer output stays in its spool file only."""
_RECORD_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


def visible(text: str) -> str:
    """Text as a person must see it before allowing it: what is invisible or moves other text is spelt out (ATK: bidi)."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character == "\n":
        return "⏎"
    if character == "\t":
        return " "
    category = unicodedata.category(character)
    hidden = category[0] == "C" or category in ("Zl", "Zp") or (category == "Zs" and character != " ")
    variation = 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF
    return f"<U+{ord(character):04X}>" if hidden or variation else character


def digest(*parts: object) -> str:
    """One hash for all that a permission shows; parts cannot run into each other."""
    return sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


def record_directory(call: StartedCall, ctx: ToolContext) -> Path:
    """Where the record of a started call lies: as its intent says."""
    names = [str(intent.model_dump(by_alias=True).get("record", "")) for intent in call.intents]
    name = next((name for name in names if _RECORD_NAME.fullmatch(name)), ctx.call_id)
    return ctx.spool / name


def intent_command(intents: tuple[Intent, ...]) -> str:
    """The command as its intent recorded it."""
    return next((str(intent.model_dump(by_alias=True).get("command", "")) for intent in intents), "")


async def start(
    commands: Commands, directory: Path, spec: records.Spec, environment: Mapping[str, str]
) -> Supervised | Outcome:
    """Start a command whose intent is durable; an Outcome where that is not possible: then nothing of it ran."""
    try:
        return await commands.start(directory, spec, environment)
    except FileExistsError:
        why = "This call was started or judged before; it is not started again."
    except OSError as error:
        why = f"The command could not be started ({error.strerror}). Nothing of it ran."
    return Outcome("error", why, reason="CommandNotStarted")


async def follow(supervised: Supervised, ctx: ToolContext) -> None:
    """Show a command's output live, coalesced and bounded, until the command has ended. What cannot be read now is shown later."""
    live = LiveOutput(supervised.directory / records.OUTPUT, head_max=LIVE_HEAD_MAX, tail_max=LIVE_TAIL_MAX)
    while not supervised.is_ended:
        try:
            async with asyncio.timeout(LIVE_S):
                await supervised.ended()
        except TimeoutError:
            await _show(live.step, ctx)
    await _show(live.last, ctx)


async def _show(read: Callable[[], str], ctx: ToolContext) -> None:
    try:
        text = await asyncio.to_thread(read)
    except OSError as error:
        if want_of(error) is None:
            raise
        return  # the result has it all
    if text:
        await ctx.output(text)


async def stopped_for_cancel(commands: Commands, directory: Path) -> Outcome:
    """End a command whose call was cancelled; further cancellations change nothing, the tree has to go first (b01, b15)."""
    stopping = asyncio.ensure_future(commands.stop(directory))
    while not stopping.done():
        try:
            await asyncio.wait({stopping})
        except asyncio.CancelledError:
            continue
    state = stopping.result()
    if state.found == "never_begun":
        return Outcome("cancelled", "The call was cancelled before the command began. Nothing of it ran.")
    if state.exit is None:
        return Outcome("cancelled", _LOST)
    text, blob, blobs = await asyncio.to_thread(_output, directory)
    end = state.exit
    if end.why == "exited":
        told = f"The call was cancelled just as the command ended by itself ({_code(end)}, {_seconds(end)}). Its effects stand."
    else:
        told = (
            f"The command was started and was killed after {_seconds(end)}, before it finished. What it did until then "
            "stands, its effects are unknown: check the state before you depend on it."
        )
    return Outcome("cancelled", _joined(told, text), exit_code=end.code, blob=blob, blobs=blobs)


async def outcome_of(state: State, directory: Path) -> Outcome:
    """The result of a command that is not running any more."""
    if state.exit is None:
        if state.found == "never_begun":
            return Outcome(
                "error", "The command could not be started. Nothing of it ran; try again.", reason="CommandNotStarted"
            )
        return Outcome("error", _LOST, reason="CommandLost")
    text, blob, blobs = await asyncio.to_thread(_output, directory)
    end = state.exit
    status = "ok" if end.why == "exited" and end.code == 0 else "error"
    content = _joined(_told(end), text)
    return Outcome(status, content, exit_code=end.code, blob=blob, blobs=blobs, reason=_REASONS.get(end.why))


_LOST = (
    "The command was started, and nobody saw how it ended (its supervisor was killed too, or the machine restarted). "
    "Its effects are not known: check the state before you depend on it. It was not started again."
)
_REASONS = {"timed_out": "TimedOut", "stopped": "Stopped", "abandoned": "Abandoned"}


def _told(end: records.Exit) -> str:
    """One paragraph: how it ended, after how long, and what that means."""
    stands = "What it did until then stands: check the state before you depend on it."
    how = {
        "exited": f"[{_code(end)}, {_seconds(end)}]",
        "timed_out": f"[The command ran into its time limit and was ended after {_seconds(end)}, {_code(end)}. {stands}]",
        "stopped": f"[The command was stopped after {_seconds(end)}, {_code(end)}. {stands}]",
        "abandoned": f"[The daemon died while the command ran, and none came back in time: it was ended after "
        f"{_seconds(end)}, {_code(end)}. {stands}]",
    }.get(end.why, f"[{end.why}, {_code(end)}, {_seconds(end)}]")
    if end.left_behind:
        how += (
            f"\n[{end.left_behind} of its processes were still there when it ended, and were ended too. "
            "Use background: true for what is to stay.]"
        )
    if end.set_aside:
        how += (
            f"\n[It made what an editor or agent acts upon; that was renamed: {', '.join(map(visible, end.set_aside))}. "
            "If the person wants it, they rename it back.]"
        )
    if end.dropped_bytes:
        how += f"\n[{end.dropped_bytes} bytes of output over the limit were not kept.]"
    return how


def _code(end: records.Exit) -> str:
    if end.code is None:
        return "exit code not known"
    return f"exit code {end.code}" + (f" (signal {end.signal})" if end.signal is not None else "")


def _seconds(end: records.Exit) -> str:
    return f"{max(0, end.ended_at_ms - end.started_at_ms) / 1000:.1f} s"


def _joined(told: str, text: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{told}" if text else f"(no output)\n{told}"


def _output(directory: Path) -> tuple[str, str | None, dict[str, bytes]]:
    """The output for the model, and the whole of it as a blob where that was cut."""
    path = directory / records.OUTPUT
    cut = excerpt(path, head_max=HEAD_MAX, tail_max=TAIL_MAX)
    if not cut.dropped or path.stat().st_size > BLOB_MAX:
        return cut.text, None, {}
    data = path.read_bytes()
    blob = sha256(data).hexdigest()
    return cut.text, blob, {blob: data}


# -- after a crash ----------------------------------------------------------------------------------------------------

VERDICTS: dict[str, Verdict] = {
    "never_begun": "not_applied",
    "starting": "running",
    "running": "running",
    "unsupervised": "running",
    "ended": "finished",
    "lost": "unknown",
    "later_version": "unknown",
}
"""What was found → the verdict on a command."""


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _at(state: State) -> str:
    return f" ({state.record.process.pid}, {_moment(state.record.started_at_ms)})" if state.record else ""


def evidence(state: State) -> str:
    """What was found, as a sentence."""
    record = state.record
    process = (
        f"process {record.process.pid}, running since {_moment(record.started_at_ms)}" if record else "its process"
    )
    if state.found == "ended" and state.exit is not None:
        return f"The command's exit record says: {_told(state.exit)}"
    return {
        "never_begun": "The command had not begun when it was checked, and cannot begin any more.",
        "starting": "The command's supervisor lives and is about to start it.",
        "running": f"The command is still running ({process}). It can be waited for or stopped.",
        "unsupervised": f"The command is still running ({process}), but its supervisor is gone: how it ends will not be known.",
        "lost": f"The command's process was started{_at(state)} and is gone, and nobody recorded how it ended.",
        "later_version": f"The command's record was written by a newer Standfast ({state.detail}) and was left alone.",
    }.get(state.found, state.found)


async def verification(state: State, directory: Path, command: str) -> Verification:
    """The verdict on a command, with its real result where it has one."""
    verdict = VERDICTS[state.found]
    outcome: Outcome | None = None
    if state.found == "ended":
        outcome = await outcome_of(state, directory)
    elif state.found == "never_begun":
        outcome = Outcome("cancelled", "The command was not started: the daemon died before that. Nothing of it ran.")
    return Verification(verdict, (Target(command=command, verdict=verdict),), evidence(state), outcome)


async def stop_started(commands: Commands, call: StartedCall, ctx: ToolContext) -> Settlement:
    """The recovery action `stop`: end the tree. Also right where it has ended already.

    Raises NotAvailable (`ActionNotAvailable`) where nothing of it is left that could be stopped, or it is not ours to stop.
    """
    command = intent_command(call.intents)
    state = await commands.stop(record_directory(call, ctx))
    if state.found in ("lost", "later_version"):
        raise NotAvailable("ActionNotAvailable", f"Nothing was stopped. {evidence(state)}")
    verdict = VERDICTS[state.found]
    return Settlement(verdict, evidence(state), targets=(Target(command=command, verdict=verdict),))


def not_available(action: str, why: str) -> NotAvailable:
    """The answer to a recovery action that does not fit."""
    return NotAvailable("ActionNotAvailable", f"`{action}` is not possible here: {why} Nothing was changed.")
