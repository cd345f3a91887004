"""A session as text to read: events to Markdown, for `standfast show` and the transcript document. Pure.

What a model, a tool or a file wrote is shown, never obeyed: control and bidi characters are made visible (ATK-43, ATK-45).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from standfast.events.types import (
    AssistantChunk,
    AssistantMessage,
    ConflictRaised,
    ConflictResolved,
    Fact,
    MessageQueued,
    ModelErrorHappened,
    PermissionRequested,
    PermissionResolved,
    PlanUpdated,
    Recorded,
    RecoveryResolved,
    RunFinished,
    RunStarted,
    SessionCreated,
    SessionRebound,
    SummaryCreated,
    TextContent,
    ToolCall,
    ToolRecovery,
    ToolResult,
    UserMessage,
)

CONTENT_MAX = 2_000
"""Characters of a tool's result or arguments that are shown."""


def transcript(events: Iterable[Recorded]) -> str:
    """The session as Markdown, in the order of its events. Streamed text that no whole message followed is shown as cut."""
    parts: list[str] = []
    streamed: dict[str | None, str] = {}
    for event in events:
        fact = event.fact
        if isinstance(fact, AssistantChunk):
            streamed[event.run_id] = _joined(streamed.get(event.run_id, ""), fact)
            continue
        if isinstance(fact, AssistantMessage):
            streamed.pop(event.run_id, None)
        elif isinstance(fact, ModelErrorHappened | RunFinished) and streamed.get(event.run_id):
            parts.append(f"**Assistant** (cut off)\n\n{visible(streamed.pop(event.run_id))}")
        text = _text(fact)
        if text:
            parts.append(text)
    parts.extend(f"**Assistant** (so far)\n\n{visible(text)}" for text in streamed.values() if text)
    return "\n\n".join(parts) + "\n" if parts else ""


def visible(text: str) -> str:
    """Text in which every character that could steer a terminal or hide itself is shown by its number."""
    if text.isprintable():
        return text
    return "".join(one if one in "\n\t" or not _hidden(one) else f"\\u{{{ord(one):x}}}" for one in text)


def _hidden(one: str) -> bool:
    return unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _joined(before: str, chunk: AssistantChunk) -> str:
    """A new attempt, or one that begins again, replaces what was there."""
    return chunk.text if chunk.offset == 0 else before + chunk.text


def _text(fact: Fact) -> str | None:
    tell = _TELLS.get(type(fact))
    return None if tell is None else tell(fact)


def _content(parts: Iterable[TextContent]) -> str:
    return visible("\n".join(part.text for part in parts))


def _fenced(text: str) -> str:
    """A code block whose fence the text cannot close."""
    shown = visible(text if len(text) <= CONTENT_MAX else f"{text[:CONTENT_MAX]}\n… ({len(text) - CONTENT_MAX} more)")
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{shown}\n{fence}"


def _session_created(fact: SessionCreated) -> str:
    return f"# {visible(fact.title or 'Session')}\n\nWorkspace: {visible(fact.workspace_uri)}"


def _session_rebound(fact: SessionRebound) -> str:
    return f"_Workspace is now {visible(fact.workspace_uri)}._"


def _user_message(fact: UserMessage) -> str:
    return f"## You\n\n{_content(fact.content)}"


def _message_queued(fact: MessageQueued) -> str:
    return f"_Queued:_ {_content(fact.content)}"


def _assistant_message(fact: AssistantMessage) -> str | None:
    texts = [str(block.get("text", "")) for block in fact.blocks if block.get("type") == "text"]
    return f"**Assistant**\n\n{visible(chr(10).join(texts))}" if any(texts) else None


def _tool_call(fact: ToolCall) -> str:
    return f"**Call** `{visible(fact.tool)}`\n\n{_fenced(_arguments(fact.args))}"


def _arguments(args: Mapping[str, Any]) -> str:
    lines = [f"{key}: {value if isinstance(value, str) else _json(value)}" for key, value in args.items()]
    return "\n".join(lines)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def _tool_result(fact: ToolResult) -> str:
    code = f", exit code {fact.exit_code}" if fact.exit_code is not None else ""
    late = ", found after the interruption" if fact.recovered else ""
    return f"**Result**: {fact.status}{code}{late}\n\n{_fenced(fact.content)}"


def _permission_requested(fact: PermissionRequested) -> str:
    return f"_Asked for permission:_ {visible(fact.summary)}"


def _permission_resolved(fact: PermissionResolved) -> str:
    return f"_Permission: {fact.decision}._"


def _tool_recovery(fact: ToolRecovery) -> str | None:
    if fact.status == "uncertain":
        return None
    places = ", ".join(visible(target.uri or target.command or "") for target in fact.targets)
    return f"> **After the interruption**: {fact.status} {places}\n> {visible(fact.evidence)}".rstrip("\n> ")


def _recovery_resolved(fact: RecoveryResolved) -> str:
    return f"> **Settled**: {fact.action} → {fact.verdict}"


def _conflict_raised(fact: ConflictRaised) -> str:
    return f"> **Conflict** in {visible(fact.uri)}: {visible(fact.message or fact.reason)}"


def _conflict_resolved(fact: ConflictResolved) -> str:
    return f"> **Conflict settled**: {visible(fact.action)}"


def _model_error(fact: ModelErrorHappened) -> str:
    again = f"; again in {fact.retry_after_ms} ms" if fact.retry_after_ms is not None else ""
    return f"_Model: {visible(fact.reason)} {visible(fact.message)} (attempt {fact.attempt}{again})_"


def _run_started(fact: RunStarted) -> str | None:
    return f"_Resumed ({fact.trigger})._" if fact.resumes_run_id else None


def _run_finished(fact: RunFinished) -> str | None:
    if fact.status == "succeeded":
        return None
    why = f": {visible(fact.error.message)}" if fact.error else ""
    return f"---\n\n_Run {fact.status}{why}_"


def _plan_updated(fact: PlanUpdated) -> str:
    marks = {"completed": "x", "in_progress": "~", "pending": " "}
    steps = "\n".join(f"- [{marks[step.status]}] {visible(step.text)}" for step in fact.steps)
    return f"**Plan** {visible(fact.goal)}\n\n{steps}"


def _summary_created(fact: SummaryCreated) -> str:
    return f"**Summary** (through event {fact.through_seq})\n\n{visible(fact.text)}"


_TELLS: dict[type[Fact], Callable[[Any], str | None]] = {
    SessionCreated: _session_created,
    SessionRebound: _session_rebound,
    UserMessage: _user_message,
    MessageQueued: _message_queued,
    AssistantMessage: _assistant_message,
    ToolCall: _tool_call,
    ToolResult: _tool_result,
    PermissionRequested: _permission_requested,
    PermissionResolved: _permission_resolved,
    ToolRecovery: _tool_recovery,
    RecoveryResolved: _recovery_resolved,
    ConflictRaised: _conflict_raised,
    ConflictResolved: _conflict_resolved,
    ModelErrorHappened: _model_error,
    RunStarted: _run_started,
    RunFinished: _run_finished,
    PlanUpdated: _plan_updated,
    SummaryCreated: _summary_created,
}
