"""A session's goal as a value, and what changes it (R6.3). Pure: the clock and the usage are passed in.

`status`: active | paused | blocked | usage_limited | budget_limited | complete. Accounting starts anew with a new objective.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standfast.events.types import Usage

Goal = Mapping[str, Any]
STATUSES = ("active", "paused", "blocked", "usage_limited", "budget_limited", "complete")
TURNS_MAX = 20
"""Turns that follow one another without a word of the person."""


def new(objective: str, token_budget: int | None, now_ms: int) -> dict[str, Any]:
    """A fresh goal, active, nothing used."""
    return {
        "objective": objective, "status": "active", "tokenBudget": token_budget, "tokensUsed": 0,
        "timeUsedSeconds": 0, "turns": 0, "createdAtMs": now_ms, "updatedAtMs": now_ms,
    }  # fmt: skip


def changed(goal: Goal, now_ms: int, **fields: Any) -> dict[str, Any]:
    """The goal with other fields (camelCase names)."""
    return {**goal, **fields, "updatedAtMs": now_ms}


def used(goal: Goal, usage: Usage, seconds: float, now_ms: int) -> dict[str, Any]:
    """The goal after a reply. Cached input is counted as what it is: input."""
    tokens = (
        usage.input_tokens + usage.output_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    )
    return changed(
        goal,
        now_ms,
        tokensUsed=goal["tokensUsed"] + tokens,
        timeUsedSeconds=round(goal["timeUsedSeconds"] + max(0.0, seconds), 3),
    )


def affords(goal: Goal, tokens: int) -> bool:
    """Whether a call of about so many tokens stays within the budget."""
    budget = goal.get("tokenBudget")
    return budget is None or goal["tokensUsed"] + tokens <= budget


def goes_on(goal: Goal | None) -> bool:
    """Whether the next turn may start by itself."""
    return goal is not None and goal["status"] == "active" and goal.get("turns", 0) < TURNS_MAX


def prompt(goal: Goal) -> str:
    """What the agent is told at the start of a turn of its own."""
    budget = goal.get("tokenBudget")
    left = f" {max(0, budget - goal['tokensUsed'])} of {budget} tokens are left." if budget is not None else ""
    return (
        f"Go on towards the goal: {goal['objective']}\n"
        f"Say so with `update_goal` when it is complete, or when you are blocked and need the person.{left}"
    )
