"""What the log knows, as lines for a checkpoint (R6.2): from rows, never from the model's memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standfast.projections.rows import CallRow, ConflictRow
from standfast.run.summary import Known
from standfast.store.base import Store


async def known(store: Store, session_id: str) -> Known:
    """Files with versions, uncertain calls, and what the person decided, oldest first; the person's latest message whole."""
    seen = await store.seen(session_id)
    calls = await store.calls(session_id=session_id, recovery=True)
    decided = await store.calls(session_id=session_id, decided=True)
    conflicts = await store.conflicts(session_id=session_id, open_only=False)
    messages = await store.messages(session_id=session_id, state="sent", limit=1)
    row = await store.session(session_id)
    plan = row.plan if row is not None else None
    goal = row.goal if row is not None else None
    return Known(
        plan=plan_lines(plan) if plan else (),
        goal=f"{goal['objective']} ({goal['status']})" if goal else "",
        files=[f"{path}: {file.version or 'no such file'}" for path, file in sorted(seen.items())],
        uncertain=[uncertain_line(call) for call in calls],
        decisions=[decision_line(call) for call in decided] + [conflict_line(row) for row in conflicts if row.action],
        last_message=messages[0].text if messages else "",
    )


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Pure: the goal of the plan, then each step with its status."""
    steps = [f"{step['text']}: {step['status']}" for step in plan["steps"]]
    return [plan["goal"], *steps] if plan.get("goal") else steps


def uncertain_line(call: CallRow) -> str:
    """Pure."""
    targets = ", ".join(str(target.get("uri") or target.get("command")) for target in call.targets)
    settled = f"; the person chose {call.resolution}" if call.resolution else ""
    return f"{call.tool} {targets or call.args}: {call.verdict or 'uncertain'}{settled}"


def decision_line(call: CallRow) -> str:
    """Pure."""
    if call.result_status == "denied":
        return f"refused {call.tool}: {call.summary or call.args}"
    return f"{call.resolution} for {call.tool}: {call.summary or call.args}"


def conflict_line(row: ConflictRow) -> str:
    """Pure."""
    return f"{row.action} for the refused write to {row.path or row.uri} ({row.reason})"
