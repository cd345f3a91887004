"""What a crash left behind, as events to append (R5.1, R7.1, R9.2). Pure: rows in, facts out.

The same rows always give the same facts, and what was appended once changes the rows so that nothing is appended again: recovery
can be killed at any point and repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from standfast.events.types import ErrorInfo, Fact, PermissionResolved, RunFinished, ToolRecovery, ToolResult, Usage
from standfast.projections.rows import CallRow, RunRow

CRASHES_MAX = 3
"""A run whose chain crashed so often is not resumed without being asked twice."""

NEVER_STARTED = "Not carried out: the run was interrupted before this call began. It had no effect."
NO_EFFECT = "Interrupted. The call had no effect outside; it is safe to make it again."
EXPIRED = (
    "Not carried out: the question for permission was still open when the work went on without it. It had no effect."
)


def interruption(run: RunRow, pending: Iterable[CallRow]) -> list[tuple[str, Fact]]:
    """The facts, with their run ids, that mark a run without an end as interrupted and its calls as what they are.

    `pending` are the session's calls without a result, in order.
    """
    error = ErrorInfo(
        reason="Interrupted",
        message="The daemon's process ended during this run. Everything up to that point is stored; resume the run to go on.",
    )
    end = RunFinished(status="interrupted", error=error, usage=Usage())
    return [*unanswered(pending), (run.run_id, end)]


def unanswered(pending: Iterable[CallRow]) -> list[tuple[str, Fact]]:
    """What calls without a result are once their run is over: after a crash, or because their result could not be stored.

    A call that never started did not happen; one whose permission is open stays open; one that started is `uncertain` (unless
    it has been before) - or without effect, if it announced none.
    """
    facts: list[tuple[str, Fact]] = []
    for call in pending:
        if call.state == "started" and not call.intents:
            facts.append((call.run_id, _ended(call, "cancelled", NO_EFFECT)))
        elif call.state == "started" and not call.uncertain:
            facts.append((call.run_id, ToolRecovery(call_id=call.call_id, status="uncertain")))
        elif call.state in ("proposed", "allowed"):
            facts.append((call.run_id, _ended(call, "cancelled", NEVER_STARTED)))
    return facts


def expiry(asked: Iterable[CallRow]) -> list[tuple[str, Fact]]:
    """The facts that end open permissions when the person goes on without answering them (design.md "Going on")."""
    facts: list[tuple[str, Fact]] = []
    for call in asked:
        resolved = PermissionResolved(
            call_id=call.call_id, decision="expired", by="standfast", digest=call.digest or ""
        )
        facts.append((call.run_id, resolved))
        facts.append((call.run_id, _ended(call, "cancelled", EXPIRED)))
    return facts


def crashes(chain: Sequence[RunRow]) -> int:
    """How often a chain of resumed runs, newest first, was interrupted in a row."""
    count = 0
    for run in chain:
        if run.status != "interrupted":
            break
        count += 1
    return count


def _ended(call: CallRow, status: str, content: str) -> ToolResult:
    assert status == "cancelled"
    return ToolResult(call_id=call.call_id, status="cancelled", content=content, recovered=True)
