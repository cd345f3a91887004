"""How calls, permissions, recovery, conflicts and what the model saw follow from events. Pure; called through `changes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast.events.types import (
    ConflictRaised,
    ConflictResolved,
    PermissionRequested,
    PermissionResolved,
    Recorded,
    RecoveryResolved,
    SeenFile,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
)
from standfast.projections.change import Change, Insert, Put, State, Update, Values, plain_of

# -- calls ------------------------------------------------------------------------------------------------------------

_UNSTARTED = ("proposed", "asked", "allowed")


def _call(event: Recorded, call_id: str, values: Values, **where: Any) -> Update:
    return Update("tool_calls", {"call_id": call_id, "session_id": event.session_id} | where, values)


def tool_call(event: Recorded, fact: ToolCall, _: State) -> list[Change]:
    row = {
        "call_id": fact.call_id,
        "session_id": event.session_id,
        "run_id": event.run_id or "",
        "provider_call_id": fact.provider_call_id,
        "tool": fact.tool,
        "args": fact.args,
        "state": "proposed",
        "seq": event.seq,
    }
    return [Insert("tool_calls", row)]


def permission_requested(event: Recorded, fact: PermissionRequested, _: State) -> list[Change]:
    asked = {
        "state": "asked",
        "digest": fact.digest,
        "summary": fact.summary,
        "files": plain_of(fact.files),
        "risks": fact.risks,
        "allow_key": fact.allow_key,
        "sandbox": fact.sandbox,
    }
    return [_call(event, fact.call_id, asked, state=_UNSTARTED)]


def permission_resolved(event: Recorded, fact: PermissionResolved, _: State) -> list[Change]:
    """Denied and expired calls are no longer asked for; the `tool_result` that ends them follows."""
    allowed = fact.decision in ("allow", "allowSession")
    state = {"state": "allowed" if allowed else "proposed"}
    found: list[Change] = [_call(event, fact.call_id, state, state=("proposed", "asked"))]
    if fact.decision == "allowSession" and fact.allow_key is not None:
        found.append(Put("allowances", {"session_id": event.session_id, "allow_key": fact.allow_key}))
    return found


def tool_started(event: Recorded, fact: ToolStarted, _: State) -> list[Change]:
    started = {
        "state": "started",
        "intents": plain_of(fact.intents),
        "operation_id": fact.operation_id or None,
        "sandbox": fact.sandbox,
    }
    return [_call(event, fact.call_id, started, state=_UNSTARTED)]


def tool_result(event: Recorded, fact: ToolResult, _: State) -> list[Change]:
    """The first result of a call holds (a05)."""
    done = {
        "state": "done",
        "result_status": fact.status,
        "result_seq": event.seq,
        "recovered": fact.recovered,
        "files": plain_of(fact.files),
    }
    return [_call(event, fact.call_id, done, result_seq=None), *_seen(event, fact.seen)]


def tool_recovery(event: Recorded, fact: ToolRecovery, _: State) -> list[Change]:
    values: dict[str, Any] = {"uncertain": True} if fact.status == "uncertain" else {"verdict": fact.status}
    if fact.status != "uncertain" or fact.targets:
        values["targets"] = plain_of(fact.targets)
    if fact.status != "uncertain" or fact.evidence:
        values["evidence"] = fact.evidence
    return [_call(event, fact.call_id, values)]


def recovery_resolved(event: Recorded, fact: RecoveryResolved, _: State) -> list[Change]:
    """The last action holds. What `complete` wrote are from now on the call's files."""
    values: dict[str, Any] = {"resolution": fact.action, "verdict": fact.verdict}
    if fact.action in ("keep", "dismiss"):
        values["dismissed"] = True
    if fact.action == "complete" and fact.files:
        values["files"] = plain_of(fact.files)
    return [_call(event, fact.call_id, values), *_seen(event, fact.seen)]


# -- conflicts and what the model saw ---------------------------------------------------------------------------------


def conflict_raised(event: Recorded, fact: ConflictRaised, _: State) -> list[Change]:
    row = {
        "conflict_id": fact.conflict_id,
        "call_id": fact.call_id,
        "session_id": event.session_id,
        "run_id": event.run_id or "",
        "uri": fact.uri,
        "path": fact.path,
        "reason": fact.reason,
        "state": "open",
        "detail": plain_of(fact),
        "seq": event.seq,
    }
    return [Insert("conflicts", row)]


def conflict_resolved(event: Recorded, fact: ConflictResolved, _: State) -> list[Change]:
    where = {"conflict_id": fact.conflict_id, "session_id": event.session_id}
    return [Update("conflicts", where, {"state": "resolved", "action": fact.action}), *_seen(event, fact.seen)]


def _seen(event: Recorded, files: Sequence[SeenFile]) -> list[Change]:
    return [
        Put(
            "seen_files",
            {
                "session_id": event.session_id,
                "path": seen.path,
                "version": seen.version,
                "whole": seen.whole,
                "blob": seen.blob,
            },
        )
        for seen in files
    ]
