"""What a person does with a session's goal, and how it goes on by itself while they left it active (R6.3)."""

from __future__ import annotations

from typing import Any

from standfast.errors import NotAvailable
from standfast.events.types import Fact, GoalUpdated, RunFinished
from standfast.projections.rows import SessionRow
from standfast.run import goal

SETTABLE = ("active", "paused", "complete")
"""What a person may set; the other statuses are found, not chosen."""


def updated(
    row: SessionRow, now_ms: int, *, status: str | None, token_budget: int | None, objective: str | None
) -> dict[str, Any]:
    """The goal after a person's change. A new objective starts the accounting anew. Pure.

    Raises ActionNotAvailable without a goal, or for a status that cannot be set.
    """
    if row.goal is None:
        raise NotAvailable("ActionNotAvailable", "No goal is set in this session. Nothing was changed. Set one first.")
    if status is not None and status not in SETTABLE:
        raise NotAvailable(
            "ActionNotAvailable", f"A goal cannot be set to `{status}`. Choose one of: {', '.join(SETTABLE)}."
        )
    current = dict(row.goal)
    if objective is not None and objective != current["objective"]:
        current = goal.new(objective, current.get("tokenBudget"), now_ms)
    changes: dict[str, Any] = {"turns": 0}
    if token_budget is not None:
        changes["tokenBudget"] = token_budget
        if status is None and current["status"] == "budget_limited":
            changes["status"] = "active"
    if status is not None:
        changes["status"] = status
    return goal.changed(current, now_ms, **changes)


def after_run(row: SessionRow, end: RunFinished, trigger: str, now_ms: int) -> list[Fact]:
    """What the end of a run means for an active goal. Pure.

    The person's stop pauses it; a provider that gives nothing more limits it; a turn of its own is counted.
    """
    current = row.goal
    if current is None or current["status"] != "active":
        return []
    if end.status == "cancelled":
        return [GoalUpdated(goal=goal.changed(current, now_ms, status="paused"))]
    if end.status == "failed":
        limited = end.error is not None and end.error.reason in ("RateLimited", "Overloaded")
        return [GoalUpdated(goal=goal.changed(current, now_ms, status="usage_limited" if limited else "blocked"))]
    turns = current.get("turns", 0) + 1 if trigger == "goal" else 0
    paused = turns >= goal.TURNS_MAX
    return [GoalUpdated(goal=goal.changed(current, now_ms, turns=turns, status="paused" if paused else "active"))]
