"""From an event to the changes of the rows beside the log (R3.1, R9.3). Pure; the store applies them in the same transaction.

Changes are few and plain, so that any store can carry them out, and they never fail on a strange log: what is there twice
counts once, what names something unknown changes nothing, and no event touches another session's rows. `State` is all that
a fold may look up. Replaying a log from nothing gives the same rows (`doctor --rebuild`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from standfast.events.types import (
    AssistantMessage,
    ConflictRaised,
    ConflictResolved,
    Fact,
    GoalUpdated,
    MessageDequeued,
    MessageEdited,
    MessageQueued,
    PermissionRequested,
    PermissionResolved,
    PlanUpdated,
    Recorded,
    RecoveryResolved,
    RunFinished,
    RunStarted,
    SessionArchived,
    SessionCreated,
    SessionRebound,
    SessionUpdated,
    SummaryCreated,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
    UserMessage,
)
from standfast.projections import call_changes, session_changes
from standfast.projections.change import Change, State, Update


def changes(event: Recorded, state: State) -> list[Change]:
    """The changes that one event makes; `state` is what the events before it left."""
    found: list[Change] = []
    if event.fact.durable and not isinstance(event.fact, SessionCreated):
        found.append(Update("sessions", {"session_id": event.session_id}, {"updated_at_ms": event.at_ms}))
    fold = _FOLDS.get(type(event.fact))
    if fold is not None:
        found.extend(fold(event, event.fact, state))
    return found


_Fold = Callable[[Recorded, Any, State], list[Change]]

_FOLDS: dict[type[Fact], _Fold] = {
    SessionCreated: session_changes.session_created,
    SessionUpdated: session_changes.session_updated,
    SessionRebound: session_changes.session_rebound,
    SessionArchived: session_changes.session_archived,
    MessageQueued: session_changes.message_queued,
    MessageEdited: session_changes.message_edited,
    MessageDequeued: session_changes.message_dequeued,
    UserMessage: session_changes.user_message,
    RunStarted: session_changes.run_started,
    RunFinished: session_changes.run_finished,
    AssistantMessage: session_changes.assistant_message,
    ToolCall: call_changes.tool_call,
    PermissionRequested: call_changes.permission_requested,
    PermissionResolved: call_changes.permission_resolved,
    ToolStarted: call_changes.tool_started,
    ToolResult: call_changes.tool_result,
    ToolRecovery: call_changes.tool_recovery,
    RecoveryResolved: call_changes.recovery_resolved,
    ConflictRaised: call_changes.conflict_raised,
    ConflictResolved: call_changes.conflict_resolved,
    PlanUpdated: session_changes.plan_updated,
    GoalUpdated: session_changes.goal_updated,
    SummaryCreated: session_changes.summary_created,
}
