"""From an event to the changes of the rows beside the log (R3.1, R9.3). Pure; the store applies them in the same transaction.

Changes are few and plain, so that any store can carry them out, and they never fail on a strange log: what is there twice
counts once, what names something unknown changes nothing, and no event touches another session's rows. `State` is all that
a fold may look up. Replaying a log from nothing gives the same rows (`doctor --rebuild`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from standfast.events.encode import plain
from standfast.events.types import (
    SETTLED,
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
    SeenFile,
    SessionArchived,
    SessionCreated,
    SessionRebound,
    SessionUpdated,
    Shape,
    SummaryCreated,
    TextContent,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
    Usage,
    UserMessage,
)

Values = Mapping[str, Any]
"""Column → value. In `where` a tuple means any of these, None means empty."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row; one with this key that is already there stays as it is (the first wins)."""

    table: str
    row: Values


@dataclass(frozen=True, slots=True)
class Put:
    """A new row that replaces one with this key (the last wins)."""

    table: str
    row: Values


@dataclass(frozen=True, slots=True)
class Update:
    """Set columns, and add to others, in the rows that match."""

    table: str
    where: Values
    values: Values
    add: Mapping[str, int] = field(default_factory=dict[str, int])


Change = Insert | Put | Update


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that waits in the queue."""

    message_id: str
    run_id: str


class State(Protocol):
    """What a fold may ask of the rows as the events before this one left them."""

    def queue(self, session_id: str) -> Sequence[Queued]:
        """The queued messages of a session, by position."""
        ...

    def message_seq(self, session_id: str, run_id: str) -> int | None:
        """seq of the first `user_message` of a run, if it came before."""
        ...


def changes(event: Recorded, state: State) -> list[Change]:
    """The changes that one event makes; `state` is what the events before it left."""
    found: list[Change] = []
    if event.fact.durable and not isinstance(event.fact, SessionCreated):
        found.append(Update("sessions", {"session_id": event.session_id}, {"updated_at_ms": event.at_ms}))
    fold = _FOLDS.get(type(event.fact))
    if fold is not None:
        found.extend(fold(event, event.fact, state))
    return found


# -- sessions ---------------------------------------------------------------------------------------------------------


def _session(event: Recorded, values: Values) -> Update:
    return Update("sessions", {"session_id": event.session_id}, values)


def _session_created(event: Recorded, fact: SessionCreated, _: State) -> list[Change]:
    row = {
        "session_id": event.session_id,
        "user_id": fact.user_id,
        "workspace_uri": fact.workspace_uri,
        "title": fact.title,
        "mode": fact.mode,
        "model": fact.model,
        "status": "active",
        "created_at_ms": event.at_ms,
        "updated_at_ms": event.at_ms,
        "identity": fact.identity,
        "origin": fact.origin,
        "queue_held": False,
        "summary_seq": 0,
    }
    return [Insert("sessions", row)]


def _session_updated(event: Recorded, fact: SessionUpdated, _: State) -> list[Change]:
    told = {
        "title": fact.title,
        "status": fact.status,
        "mode": fact.mode,
        "model": fact.model,
        "queue_held": fact.queue_held,
    }
    values = {column: value for column, value in told.items() if value is not None}
    return [_session(event, values)] if values else []


def _session_rebound(event: Recorded, fact: SessionRebound, _: State) -> list[Change]:
    return [_session(event, {"workspace_uri": fact.workspace_uri, "identity": fact.identity})]


def _session_archived(event: Recorded, _fact: SessionArchived, _: State) -> list[Change]:
    return [_session(event, {"status": "archived"})]


def _plan_updated(event: Recorded, fact: PlanUpdated, _: State) -> list[Change]:
    return [_session(event, {"plan": {"goal": fact.goal, "steps": _plain(fact.steps)}})]


def _goal_updated(event: Recorded, fact: GoalUpdated, _: State) -> list[Change]:
    return [_session(event, {"goal": fact.goal})]


def _summary_created(event: Recorded, _fact: SummaryCreated, _: State) -> list[Change]:
    return [_session(event, {"summary_seq": event.seq})]


# -- messages and the queue -------------------------------------------------------------------------------------------


def _message_queued(event: Recorded, fact: MessageQueued, state: State) -> list[Change]:
    run = {
        "run_id": fact.run_id,
        "session_id": event.session_id,
        "status": "queued",
        "trigger": "message",
        "queued_at_ms": event.at_ms,
        "first_seq": event.seq,
    }
    position = len(state.queue(event.session_id))
    return [Insert("runs", run), Insert("messages", _message(event, fact, fact.run_id, "queued", position))]


def _user_message(event: Recorded, fact: UserMessage, _: State) -> list[Change]:
    row = _message(event, fact, event.run_id or "", "sent", 0)
    sent = {"state": "sent", "position": 0, "seq": event.seq, "text": row["text"]}
    where = {"message_id": fact.message_id, "session_id": event.session_id, "state": "queued"}
    return [Update("messages", where, sent), Insert("messages", row)]


def _message(
    event: Recorded, fact: MessageQueued | UserMessage, run_id: str, state: str, position: int
) -> dict[str, Any]:
    return {
        "message_id": fact.message_id,
        "session_id": event.session_id,
        "client_message_id": fact.client_message_id,
        "run_id": run_id,
        "text": _text(fact.content),
        "state": state,
        "at_ms": event.at_ms,
        "position": position,
        "seq": event.seq if state == "sent" else 0,
    }


def _message_edited(event: Recorded, fact: MessageEdited, state: State) -> list[Change]:
    found: list[Change] = []
    waiting = [queued.message_id for queued in state.queue(event.session_id)]
    if fact.message_id not in waiting:
        return found
    if fact.text is not None:
        found.append(Update("messages", {"message_id": fact.message_id}, {"text": fact.text}))
    if fact.position is not None:
        waiting.remove(fact.message_id)
        waiting.insert(max(0, fact.position), fact.message_id)
        found.extend(_places(waiting))
    return found


def _message_dequeued(event: Recorded, fact: MessageDequeued, state: State) -> list[Change]:
    queue = state.queue(event.session_id)
    leaving = next((queued for queued in queue if queued.message_id == fact.message_id), None)
    if leaving is None:
        return []
    gone = "sent" if fact.reason == "started" else "removed"
    found: list[Change] = [Update("messages", {"message_id": fact.message_id}, {"state": gone, "position": 0})]
    if fact.reason == "removed":
        where = {"run_id": leaving.run_id, "session_id": event.session_id, "status": "queued"}
        found.append(Update("runs", where, {"status": "cancelled", "finished_at_ms": event.at_ms}))
    found.extend(_places([queued.message_id for queued in queue if queued is not leaving]))
    return found


def _places(message_ids: Sequence[str]) -> list[Change]:
    return [Update("messages", {"message_id": name}, {"position": place}) for place, name in enumerate(message_ids)]


# -- runs -------------------------------------------------------------------------------------------------------------


def _run_started(event: Recorded, fact: RunStarted, state: State) -> list[Change]:
    """The run goes live, and what the last crash left settled leaves `recovery` (design.md "Small print")."""
    if event.run_id is None:
        return []
    started = {
        "status": "running",
        "trigger": fact.trigger,
        "resumes_run_id": fact.resumes_run_id,
        "worker_id": fact.worker_id,
        "boot_id": fact.boot_id,
        "started_at_ms": event.at_ms,
        "first_seq": state.message_seq(event.session_id, event.run_id) or event.seq,
    }
    key = {"run_id": event.run_id, "session_id": event.session_id}
    settled = {"session_id": event.session_id, "uncertain": True, "dismissed": False, "verdict": tuple(sorted(SETTLED))}
    return [
        Insert("runs", key | started),
        Update("runs", key | {"status": "queued"}, started),
        _session(event, {"last_run_id": event.run_id, "last_run_status": "running"}),
        Update("tool_calls", settled, {"dismissed": True}),
    ]


def _run_finished(event: Recorded, fact: RunFinished, _: State) -> list[Change]:
    """The first end of a run holds. Its own sum of usage, where it gives one, replaces what its messages added up to."""
    key = {"run_id": event.run_id, "session_id": event.session_id}
    ended: dict[str, Any] = {
        "status": fact.status,
        "finished_at_ms": event.at_ms,
        "error": _plain(fact.error),
    }
    if fact.usage != Usage():
        ended |= _usage(fact.usage)
    last = {"session_id": event.session_id, "last_run_id": event.run_id, "last_run_status": "running"}
    found: list[Change] = [
        Update("runs", key | {"status": ("queued", "running")}, ended),
        Update("sessions", last, {"last_run_status": fact.status}),
    ]
    if fact.status != "succeeded":
        found.append(_session(event, {"queue_held": True}))
    return found


def _assistant_message(event: Recorded, fact: AssistantMessage, _: State) -> list[Change]:
    where = {"run_id": event.run_id, "session_id": event.session_id, "status": "running"}
    spent = {column: count for column, count in _usage(fact.usage).items() if count}
    return [Update("runs", where, {}, spent)] if event.run_id is not None and spent else []


def _usage(usage: Usage) -> dict[str, int]:
    return usage.model_dump()


# -- calls ------------------------------------------------------------------------------------------------------------

_UNSTARTED = ("proposed", "asked", "allowed")


def _call(event: Recorded, call_id: str, values: Values, **where: Any) -> Update:
    return Update("tool_calls", {"call_id": call_id, "session_id": event.session_id} | where, values)


def _tool_call(event: Recorded, fact: ToolCall, _: State) -> list[Change]:
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


def _permission_requested(event: Recorded, fact: PermissionRequested, _: State) -> list[Change]:
    asked = {
        "state": "asked",
        "digest": fact.digest,
        "summary": fact.summary,
        "files": _plain(fact.files),
        "risks": fact.risks,
        "allow_key": fact.allow_key,
        "sandbox": fact.sandbox,
    }
    return [_call(event, fact.call_id, asked, state=_UNSTARTED)]


def _permission_resolved(event: Recorded, fact: PermissionResolved, _: State) -> list[Change]:
    """Denied and expired calls are no longer asked for; the `tool_result` that ends them follows."""
    allowed = fact.decision in ("allow", "allowSession")
    state = {"state": "allowed" if allowed else "proposed"}
    found: list[Change] = [_call(event, fact.call_id, state, state=("proposed", "asked"))]
    if fact.decision == "allowSession" and fact.allow_key is not None:
        found.append(Put("allowances", {"session_id": event.session_id, "allow_key": fact.allow_key}))
    return found


def _tool_started(event: Recorded, fact: ToolStarted, _: State) -> list[Change]:
    started = {
        "state": "started",
        "intents": _plain(fact.intents),
        "operation_id": fact.operation_id or None,
        "sandbox": fact.sandbox,
    }
    return [_call(event, fact.call_id, started, state=_UNSTARTED)]


def _tool_result(event: Recorded, fact: ToolResult, _: State) -> list[Change]:
    """The first result of a call holds (a05)."""
    done = {
        "state": "done",
        "result_status": fact.status,
        "result_seq": event.seq,
        "recovered": fact.recovered,
        "files": _plain(fact.files),
    }
    return [_call(event, fact.call_id, done, result_seq=None), *_seen(event, fact.seen)]


def _tool_recovery(event: Recorded, fact: ToolRecovery, _: State) -> list[Change]:
    values: dict[str, Any] = {"uncertain": True} if fact.status == "uncertain" else {"verdict": fact.status}
    if fact.status != "uncertain" or fact.targets:
        values["targets"] = _plain(fact.targets)
    if fact.status != "uncertain" or fact.evidence:
        values["evidence"] = fact.evidence
    return [_call(event, fact.call_id, values)]


def _recovery_resolved(event: Recorded, fact: RecoveryResolved, _: State) -> list[Change]:
    """The last action holds. What `complete` wrote are from now on the call's files."""
    values: dict[str, Any] = {"resolution": fact.action, "verdict": fact.verdict}
    if fact.action in ("keep", "dismiss"):
        values["dismissed"] = True
    if fact.action == "complete" and fact.files:
        values["files"] = _plain(fact.files)
    return [_call(event, fact.call_id, values), *_seen(event, fact.seen)]


# -- conflicts and what the model saw ---------------------------------------------------------------------------------


def _conflict_raised(event: Recorded, fact: ConflictRaised, _: State) -> list[Change]:
    row = {
        "conflict_id": fact.conflict_id,
        "call_id": fact.call_id,
        "session_id": event.session_id,
        "run_id": event.run_id or "",
        "uri": fact.uri,
        "path": fact.path,
        "reason": fact.reason,
        "state": "open",
        "detail": _plain(fact),
        "seq": event.seq,
    }
    return [Insert("conflicts", row)]


def _conflict_resolved(event: Recorded, fact: ConflictResolved, _: State) -> list[Change]:
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


def _text(content: Sequence[TextContent]) -> str:
    return "\n".join(part.text for part in content)


def _plain(value: Shape | Sequence[Shape] | None) -> Any:
    """Shapes as JSON values; see `events.encode.plain`."""
    if value is None:
        return None
    if isinstance(value, Shape):
        return plain(value)
    return [plain(item) for item in value]


_Fold = Callable[[Recorded, Any, State], list[Change]]

_FOLDS: dict[type[Fact], _Fold] = {
    SessionCreated: _session_created,
    SessionUpdated: _session_updated,
    SessionRebound: _session_rebound,
    SessionArchived: _session_archived,
    MessageQueued: _message_queued,
    MessageEdited: _message_edited,
    MessageDequeued: _message_dequeued,
    UserMessage: _user_message,
    RunStarted: _run_started,
    RunFinished: _run_finished,
    AssistantMessage: _assistant_message,
    ToolCall: _tool_call,
    PermissionRequested: _permission_requested,
    PermissionResolved: _permission_resolved,
    ToolStarted: _tool_started,
    ToolResult: _tool_result,
    ToolRecovery: _tool_recovery,
    RecoveryResolved: _recovery_resolved,
    ConflictRaised: _conflict_raised,
    ConflictResolved: _conflict_resolved,
    PlanUpdated: _plan_updated,
    GoalUpdated: _goal_updated,
    SummaryCreated: _summary_created,
}
