"""What is open in a history stays with the original; a copy of it (import, fork) begins with nothing open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from standfast.events.types import (
    ConflictResolved,
    Fact,
    GoalUpdated,
    MessageDequeued,
    PermissionResolved,
    RecoveryResolved,
    RunFinished,
    SessionUpdated,
    ToolResult,
    Verdict,
)
from standfast.projections.rows import CallRow
from standfast.store import queries
from standfast.store.adopt import adopt
from standfast.store.past import Past
from standfast.store.tables import SESSIONS

SETTLING = frozenset({"keep", "complete", "undo", "dismiss"})
"""Resolutions after which a call is no longer open, though it has no result."""

BY = "copy"
"""Who resolved a permission, in `permission_resolved`."""


def close_copy(connection: sqlite3.Connection, session_id: str) -> int:
    """Append what ends everything open in a copy, at the time of its last event; returns the number of events."""
    at_ms = connection.execute("SELECT updated_at_ms FROM sessions WHERE session_id = ?", (session_id,)).fetchone()[0]
    return adopt(
        connection, session_id, [Past(at_ms, run_id, fact) for run_id, fact in _endings(connection, session_id)]
    )


def _endings(connection: sqlite3.Connection, session_id: str) -> Iterator[tuple[str | None, Fact]]:
    for call in queries.calls(connection, run_id=None, session_id=session_id, pending=True, recovery=False):
        if call.resolution not in SETTLING:
            yield from ((call.run_id or None, fact) for fact in _of_call(call))
    for call in queries.calls(connection, run_id=None, session_id=session_id, pending=False, recovery=True):
        verdict: Verdict = call.verdict or "unknown"  # pyright: ignore[reportAssignmentType] - a row holds what a fact held
        yield call.run_id or None, RecoveryResolved(call_id=call.call_id, action="dismiss", verdict=verdict)
    for conflict in queries.conflicts(connection, session_id=session_id, open_only=True):
        yield conflict.run_id or None, ConflictResolved(conflict_id=conflict.conflict_id, action="dismiss")
    waiting = queries.messages(
        connection, session_id=session_id, state="queued", query=None, workspace_uris=None, limit=queries.LIMIT_MAX
    )
    for message in waiting:
        yield message.run_id, MessageDequeued(message_id=message.message_id, reason="removed")
    for run in queries.live_runs(connection, session_id):
        yield run.run_id, RunFinished(status="interrupted")
    row = queries.one(connection, SESSIONS, "session_id = ?", session_id)
    if row is not None and row.goal is not None and row.goal.get("status") == "active":
        yield None, GoalUpdated(goal={**row.goal, "status": "paused"})
    yield None, SessionUpdated(queue_held=False)


def _of_call(call: CallRow) -> list[Fact]:
    found: list[Fact] = []
    if call.state == "asked":
        found.append(PermissionResolved(call_id=call.call_id, decision="expired", by=BY, digest=call.digest or ""))
    content = "Cancelled: this conversation is a copy; the call belongs to the original."
    found.append(ToolResult(call_id=call.call_id, status="cancelled", content=content, recovered=True))
    return found
