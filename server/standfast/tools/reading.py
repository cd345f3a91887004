"""What the tools that only read have in common: there is nothing to verify and nothing to settle; they are safe to repeat."""

from __future__ import annotations

from standfast.errors import NotAvailable
from standfast.tools.base import Outcome, Settlement, StartedCall, ToolContext, Verification


class ReadsFiles:
    """The parts of `Tool` that all reading tools share."""

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """It changed nothing, whatever became of it."""
        outcome = Outcome("error", "It was interrupted; it only reads, so do it again.", reason="interrupted")
        return Verification("not_applied", (), "It only reads.", outcome)

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """Raises NotAvailable (`ActionNotAvailable`)."""
        raise NotAvailable("ActionNotAvailable", "A call that only reads has nothing to settle.")
