"""`update_goal`: the model reports that the goal is reached, or that it is stuck (R6.3). It can end a goal, never set or widen one."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from standfast.errors import NotAvailable
from standfast.events.types import GoalUpdated
from standfast.tools.base import Effect, Outcome, Plan, Settlement, StartedCall, ToolContext, Verification


class UpdateGoalArgs(BaseModel):
    """The outcome of the goal."""

    status: Literal["complete", "blocked"]
    reason: str = Field(default="", max_length=2000, description="What was reached, or what is missing.")


class UpdateGoal:
    """Records the end of a goal; nothing outside is touched."""

    name = "update_goal"
    description = "Report that the session's goal is complete, or that you are blocked and need the person. Only where a goal is set."
    effect: Effect = "read"
    Args = UpdateGoalArgs

    async def plan(self, args: UpdateGoalArgs, ctx: ToolContext) -> Plan | Outcome:
        if ctx.goal is None:
            return Outcome("error", "No goal is set in this session. Nothing was changed.")
        return Plan("read", f"report the goal {args.status}")

    async def run(self, args: UpdateGoalArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        goal = {**(ctx.goal or {}), "status": args.status, "reason": args.reason}
        return Outcome("ok", f"The goal is recorded as {args.status}.", facts=(GoalUpdated(goal=goal),))

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        return Verification("not_applied", (), "a report has no effect outside")

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        raise NotAvailable("ActionNotAvailable", f"`{action}` does not fit a report. Nothing was changed.")
