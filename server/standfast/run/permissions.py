"""Whether a planned call goes through, is asked, or is refused (design.md "Session modes"). Pure: a decision over values.

Shell text is never read to judge safety: no prefix rules, no classifier (e01, e02, e05, ATK-31).
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

from standfast.process.sandbox import below
from standfast.tools.base import Plan

Decision = Literal["allow", "ask", "deny"]


def decide(
    mode: str, plan: Plan, allowed: Set[str], *, untrusted: bool = False, level: str = "none", minimum: str = "none"
) -> Decision:
    """What becomes of a plan in a session's mode.

    `plan` reads only · `ask` asks for every write and command · `edit` lets edits of the workspace through · `auto` commands too.
    `allowed` holds what the person allowed for the session, as exact keys. A plan with risks is asked in every mode: the person
    sees each risk by name, and no earlier answer covers it. `untrusted`: the editor declared the folder so; then at most `ask`.
    `level`: what the command would run under; below the person's `minimum` every command is asked, whatever was allowed before.
    """
    if untrusted and mode not in ("plan", "ask"):
        mode = "ask"
    if plan.effect == "read":
        return "ask" if plan.risks else "allow"
    if mode == "plan":
        return "deny"
    if plan.risks or (plan.effect == "command" and below(level, minimum)):
        return "ask"
    if plan.allow_key is not None and plan.allow_key in allowed:
        return "allow"
    if mode == "auto" or (mode == "edit" and plan.effect == "edit"):
        return "allow"
    return "ask"


def risks_of(plan: Plan, level: str, minimum: str) -> tuple[str, ...]:
    """What the person must know: the plan's own risks; else why a command is asked that would not be in a better sandbox."""
    if plan.risks or plan.effect != "command" or not below(level, minimum):
        return plan.risks
    how = "without a sandbox, with your own rights" if level == "none" else f"in the {level} sandbox"
    return (f"It runs {how}: this machine cannot do what you want at least (`{minimum}`), so each command is asked.",)
