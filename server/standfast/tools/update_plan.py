"""`update_plan`: the model proposes a plan; the harness stores it, and shows it (R6.1). Touches nothing outside."""

from __future__ import annotations

from pydantic import BaseModel, Field

from standfast.errors import NotAvailable
from standfast.events.types import PlanStep, PlanUpdated
from standfast.tools.base import Effect, Outcome, Plan, Settlement, StartedCall, ToolContext, Verification


class UpdatePlanArgs(BaseModel):
    """The whole plan as it is now; it replaces the one before."""

    goal: str = Field(default="", max_length=2000, description="What the work is for, in one sentence.")
    steps: list[PlanStep] = Field(max_length=100, description="All steps in order, each with its status.")


class UpdatePlan:
    """Records a plan. There is nothing to verify: either the fact is in the log, or it is not."""

    name = "update_plan"
    description = (
        "Keep the plan of a task of several steps up to date: give all steps, each pending, in_progress or completed "
        "(at most one in_progress). The person sees it, and it survives restarts."
    )
    effect: Effect = "read"
    Args = UpdatePlanArgs

    async def plan(self, args: UpdatePlanArgs, ctx: ToolContext) -> Plan | Outcome:
        if not args.steps:
            return Outcome("error", "A plan needs at least one step. The plan was not changed.")
        if sum(step.status == "in_progress" for step in args.steps) > 1:
            return Outcome("error", "At most one step can be in progress. The plan was not changed.")
        return Plan("read", f"update the plan ({len(args.steps)} steps)")

    async def run(self, args: UpdatePlanArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        done = sum(step.status == "completed" for step in args.steps)
        fact = PlanUpdated(goal=args.goal, steps=args.steps)
        return Outcome("ok", f"The plan is stored: {done} of {len(args.steps)} steps completed.", facts=(fact,))

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        return Verification("not_applied", (), "a plan has no effect outside")

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        raise NotAvailable("ActionNotAvailable", f"`{action}` does not fit a plan. Nothing was changed.")
