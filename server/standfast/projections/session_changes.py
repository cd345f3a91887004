"""How sessions, messages, the queue and runs follow from events. Pure; called through `changes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast.events.types import (
    SETTLED,
    AssistantMessage,
    GoalUpdated,
    MessageDequeued,
    MessageEdited,
    MessageQueued,
    PlanUpdated,
    Recorded,
    RunFinished,
    RunStarted,
    SessionArchived,
    SessionCreated,
    SessionRebound,
    SessionUpdated,
    SummaryCreated,
    TextContent,
    Usage,
    UserMessage,
)
from standfast.projections.change import Change, Insert, State, Update, Values, plain_of

# -- sessions ---------------------------------------------------------------------------------------------------------


def _session(event: Recorded, values: Values) -> Update:
    return Update("sessions", {"session_id": event.session_id}, values)


def session_created(event: Recorded, fact: SessionCreated, _: State) -> list[Change]:
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


def session_updated(event: Recorded, fact: SessionUpdated, _: State) -> list[Change]:
    told = {
        "title": fact.title,
        "status": fact.status,
        "mode": fact.mode,
        "model": fact.model,
        "queue_held": fact.queue_held,
    }
    values = {column: value for column, value in told.items() if value is not None}
    return [_session(event, values)] if values else []


def session_rebound(event: Recorded, fact: SessionRebound, _: State) -> list[Change]:
    return [_session(event, {"workspace_uri": fact.workspace_uri, "identity": fact.identity})]


def session_archived(event: Recorded, _fact: SessionArchived, _: State) -> list[Change]:
    return [_session(event, {"status": "archived"})]


def plan_updated(event: Recorded, fact: PlanUpdated, _: State) -> list[Change]:
    return [_session(event, {"plan": {"goal": fact.goal, "steps": plain_of(fact.steps)}})]


def goal_updated(event: Recorded, fact: GoalUpdated, _: State) -> list[Change]:
    return [_session(event, {"goal": fact.goal})]


def summary_created(event: Recorded, fact: SummaryCreated, _: State) -> list[Change]:
    return [_session(event, {"summary_seq": event.seq}), *_spent(event, fact.model, fact.usage)]


# -- messages and the queue -------------------------------------------------------------------------------------------


def message_queued(event: Recorded, fact: MessageQueued, state: State) -> list[Change]:
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


def user_message(event: Recorded, fact: UserMessage, _: State) -> list[Change]:
    row = _message(event, fact, event.run_id or "", "sent", 0)
    sent = {"state": "sent", "position": 0, "seq": event.seq, "text": row["text"]}
    where = {"message_id": fact.message_id, "session_id": event.session_id, "seq": 0}
    untitled = {"session_id": event.session_id, "title": ""}
    return [
        Update("messages", where, sent),
        Insert("messages", row),
        Update("sessions", untitled, {"title": title_of(row["text"])}),
    ]


TITLE_MAX = 60
"""Characters of a title that nobody chose."""


def title_of(text: str) -> str:
    """The first words of the first message: a title without a model call (issue F.5)."""
    line = " ".join(next((line for line in text.splitlines() if line.strip()), "").split())
    if len(line) <= TITLE_MAX:
        return line
    words = line[:TITLE_MAX].rsplit(" ", 1)
    return (words[0] if len(words[0]) > TITLE_MAX // 2 else line[:TITLE_MAX]) + "…"


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


def message_edited(event: Recorded, fact: MessageEdited, state: State) -> list[Change]:
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


def message_dequeued(event: Recorded, fact: MessageDequeued, state: State) -> list[Change]:
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


def run_started(event: Recorded, fact: RunStarted, state: State) -> list[Change]:
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


def run_finished(event: Recorded, fact: RunFinished, _: State) -> list[Change]:
    """The first end of a run holds. Its own sum of usage, where it gives one, replaces what its messages added up to."""
    key = {"run_id": event.run_id, "session_id": event.session_id}
    ended: dict[str, Any] = {
        "status": fact.status,
        "finished_at_ms": event.at_ms,
        "error": plain_of(fact.error),
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


def assistant_message(event: Recorded, fact: AssistantMessage, _: State) -> list[Change]:
    where = {"run_id": event.run_id, "session_id": event.session_id, "status": "running"}
    used = {column: count for column, count in _usage(fact.usage).items() if count}
    to_run: list[Change] = [Update("runs", where, {}, used)] if event.run_id is not None and used else []
    return to_run + _spent(event, fact.model, fact.usage)


DAY_MS = 86_400_000


def _spent(event: Recorded, model: str | None, usage: Usage) -> list[Change]:
    """One reply's tokens, counted under its model and its day (UTC, days since 1970)."""
    if model is None:
        return []
    key = {"session_id": event.session_id, "day": event.at_ms // DAY_MS, "model": model}
    return [Insert("spent", key), Update("spent", key, {}, {"requests": 1, **_usage(usage)})]


def _usage(usage: Usage) -> dict[str, int]:
    return usage.model_dump()


def _text(content: Sequence[TextContent]) -> str:
    return "\n".join(part.text for part in content)
