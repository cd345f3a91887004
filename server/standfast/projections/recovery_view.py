"""What the last interruption left, as clients see it (design.md `recovery`). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast.projections.rows import CallRow, RunRow

VERDICT_UNCHECKED = "unknown"
"""Said of a call that is uncertain and was not verified yet."""


def verdict_of(call: CallRow) -> str:
    """The word for what became of a call."""
    return call.verdict or VERDICT_UNCHECKED


def targets_of(call: CallRow) -> list[dict[str, Any]]:
    """What the call acted on, each with its verdict: as verified, or as the call's, once it was completed or undone."""
    if call.resolution in ("complete", "undo"):
        return [target | {"verdict": verdict_of(call)} for target in call.targets]
    return call.targets


def left_a_lock(call: CallRow) -> bool:
    """Its dead git left a lock that it can take away again: the tool found that out, and names the action only then."""
    told = "removeLock" in (call.evidence or "")
    return told and call.resolution != "removeLock" and verdict_of(call) != "running"


def recovery(run: RunRow | None, calls: Sequence[CallRow]) -> dict[str, Any] | None:
    """`{interruptedRun?, calls: […]}`, or None if nothing is left. `calls`: uncertain once and not dismissed."""
    interrupted = run if run is not None and run.status == "interrupted" else None
    if interrupted is None and not calls:
        return None
    found: dict[str, Any] = {"calls": [_call(call) for call in calls]}
    if interrupted is not None:
        found["interruptedRun"] = {"runId": interrupted.run_id, "status": interrupted.status}
    return found


def _call(call: CallRow) -> dict[str, Any]:
    told: dict[str, Any] = {
        "callId": call.call_id,
        "tool": call.tool,
        "targets": targets_of(call),
        "verdict": verdict_of(call),
        "evidence": call.evidence or "",
    }
    if call.resolution is not None:
        told["resolution"] = call.resolution
    return told
