"""Asks the owners of uncertain calls what became of them, and records the answers (R8, R9.3, design.md "Verification after a crash").

When: a client opens the folder or attaches, before the next run, and when the person asks. Only the calls' own targets are looked at. A
verdict is recorded once, another only when a later check finds a change.
"""

from __future__ import annotations

import asyncio
import logging

from standfast.errors import StandfastError
from standfast.events.types import SETTLED
from standfast.failpoints import hit
from standfast.foreign.retell import FOREIGN
from standfast.projections.rows import CallRow, SessionRow
from standfast.run.carry_out import verdict_facts
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.tooling import started_call, tool_context
from standfast.tools.base import Verification

log = logging.getLogger("standfast.session")


async def verify_session(parts: Parts, live: Live, row: SessionRow, *, only: str | None = None) -> None:
    """Verify the session's uncertain calls that are not settled; `only` one of them."""
    async with live.checking:
        for call in await parts.store.calls(session_id=row.session_id, recovery=True):
            if (only is not None and call.call_id != only) or is_foreign(call):
                continue
            if call.state != "done" and call.verdict not in SETTLED and not _settled_by_person(call):
                await _verify(parts, live, row, call)


def is_foreign(call: CallRow) -> bool:
    """Another agent's call, taken in with its history: nobody here knows how to look."""
    return bool(call.intents) and call.intents[0].get("kind") == FOREIGN


def _settled_by_person(call: CallRow) -> bool:
    return call.resolution in ("complete", "undo")


async def _verify(parts: Parts, live: Live, row: SessionRow, call: CallRow) -> None:
    hit("in_recovery")
    found = await _ask_tool(parts, row, call)
    if _changed(call, found):
        await _record(parts, call, found)
    if found.verdict == "running" and parts.wait is not None and call.call_id not in live.watched:
        live.watched.add(call.call_id)
        parts.spawn(_watch(parts, live, row, call), f"watch {call.call_id}")


def _changed(call: CallRow, found: Verification) -> bool:
    targets = [target.model_dump(by_alias=True, exclude_none=True) for target in found.targets]
    return call.verdict != found.verdict or call.targets != targets


async def _record(parts: Parts, call: CallRow, found: Verification) -> None:
    """Verdict and result in one transaction."""
    blobs = found.outcome.blobs if found.outcome is not None else None
    await parts.journal.emit(call.session_id, verdict_facts(call.call_id, found), run_id=call.run_id, blobs=blobs)


async def _ask_tool(parts: Parts, row: SessionRow, call: CallRow) -> Verification:
    tool = parts.tools.get(call.tool)
    if tool is None:
        return Verification("unknown", (), f"there is no tool {call.tool} any more that could check it")
    try:
        ctx = await tool_context(parts, row, call.call_id, call.operation_id or "")
        return await tool.verify(started_call(call), ctx)
    except (OSError, StandfastError, ValueError) as error:
        log.warning("verification failed", extra={"call_id": call.call_id, "error": type(error).__name__})
        said = error.message if isinstance(error, StandfastError) else f"{type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.strerror:
            said = error.strerror
        return Verification("unknown", (), f"it could not be checked ({said})")


async def _watch(parts: Parts, live: Live, row: SessionRow, call: CallRow) -> None:
    """A command that outlived the crash: its end is recorded when it comes. Nothing is started by it."""
    assert parts.wait is not None
    try:
        ctx = await tool_context(parts, row, call.call_id, call.operation_id or "")
        found = await parts.wait(started_call(call), ctx)
        async with live.checking:
            now = await parts.store.call(call.call_id)
            if now is not None and now.state != "done" and _changed(now, found):
                await _record(parts, now, found)
    except (OSError, StandfastError) as error:
        log.warning("watch ended", extra={"call_id": call.call_id, "error": str(error)})
    except asyncio.CancelledError:
        pass
    finally:
        live.watched.discard(call.call_id)
