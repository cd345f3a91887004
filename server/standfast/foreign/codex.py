"""Codex rollouts: `session_meta`, then response items and events, with or without ordinals (R3.6). Pure.

The person's words are user messages that are not context which the program put in; in files that mark them, the mark decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from standfast.events.types import ChangedFile, Usage
from standfast.foreign.fields import at_ms, joined, number, part, text
from standfast.foreign.retell import file_uri
from standfast.foreign.spoken import Answered, Began, Call, Changed, Ended, Item, Json, Replied, Said, Summed

PROGRAM = "Codex"
_PUT_IN = re.compile(
    r"\s*<(environment_context|user_instructions|permissions|turn_aborted|skills?_?\w*|collaboration)\b"
)
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_KINDS = {"add": "add", "update": "update", "delete": "delete"}
ABORTED = "aborted"


def is_codex(record: Json) -> bool:
    """Whether a file's first record is Codex': a `session_meta`, or the bare one of its first versions."""
    return record.get("type") == "session_meta" or (
        "type" not in record and "id" in record and "instructions" in record
    )


def read(records: Iterable[Json]) -> Iterator[Item]:
    """The items of a rollout."""
    usage, model = Usage(), None
    for record in records:
        payload = part(record, "payload")
        when = at_ms(record)
        match record.get("type"):
            case "session_meta":
                yield _began(record, payload)
            case "turn_context":
                model = text(payload, "model") or model
            case "response_item":
                yield from _item(payload, when, model)
            case "token_usage_record":
                usage = _usage(part(payload, "usage"))
                yield Replied(when, usage=usage, model=model)
            case "event_msg":
                yield from _event(payload, when)
            case "compacted":
                if summary := text(payload, "message"):
                    yield Summed(when, summary)
            case "message" | "function_call" | "function_call_output" | "local_shell_call":
                yield from _item(dict(record), when, model)
            case "user_message":
                yield Said(when, text(record, "text") or "(no text)")
            case None if "id" in record:
                yield _began(record, {})
            case _:
                pass


def _began(record: Json, payload: dict[str, Any]) -> Began:
    meta = payload or dict(record)
    return Began(at_ms(record) or at_ms(meta), PROGRAM, text(meta, "id") or text(meta, "session_id"), text(meta, "cwd"))


def _item(payload: dict[str, Any], when: int, model: str | None) -> Iterator[Item]:
    match payload.get("type"):
        case "message":
            yield from _message(payload, when, model)
        case "function_call":
            yield _call(payload, when, _arguments(text(payload, "arguments")), model)
        case "custom_tool_call":
            yield _call(payload, when, {"input": text(payload, "input")}, model)
        case "local_shell_call":
            yield _call(payload | {"name": "local_shell"}, when, part(payload, "action"), model)
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            yield _answered(payload, when)
        case _:
            pass


def _message(payload: dict[str, Any], when: int, model: str | None) -> Iterator[Item]:
    said = joined(payload.get("content"))
    if payload.get("role") == "assistant":
        yield Replied(when, said, model=model)
    elif payload.get("role") == "user" and said.strip() and not _is_put_in(payload, said):
        yield Said(when, said)


def _is_put_in(payload: dict[str, Any], said: str) -> bool:
    kinds: Any = part(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    if isinstance(kinds, list) and kinds:
        return not any(str(kind).startswith("user.") for kind in cast("list[Any]", kinds))
    return _PUT_IN.match(said) is not None


def _call(payload: dict[str, Any], when: int, args: dict[str, Any], model: str | None) -> Replied:
    call = Call(text(payload, "call_id") or text(payload, "id"), text(payload, "name") or "unknown", args)
    return Replied(when, calls=[call], model=model)


def _arguments(raw: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(raw)
    except ValueError:
        return {"arguments": raw}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"arguments": raw}


def _answered(payload: dict[str, Any], when: int) -> Answered:
    output: Any = payload.get("output")
    wrapped = part(payload, "output")
    said = text(wrapped, "content") if wrapped else joined(output)
    found = _EXIT.search(said[:400])
    code = int(found[1]) if found else None
    failed = (code is not None and code != 0) or wrapped.get("success") is False
    return Answered(
        when, text(payload, "call_id"), said, "error" if failed else "ok", code, lost=said.strip() == ABORTED
    )


def _event(payload: dict[str, Any], when: int) -> Iterator[Item]:
    match payload.get("type"):
        case "task_complete":
            yield Ended(when)
        case "turn_aborted":
            yield Ended(when, "cancelled")
        case "item_completed" if part(payload, "item").get("type") == "FileChange":
            yield _changed(part(payload, "item"))
        case "patch_apply_end":
            yield _changed(payload | {"id": text(payload, "call_id")})
        case _:
            pass


def _changed(item: dict[str, Any]) -> Changed:
    files: list[ChangedFile] = []
    for path, change in part(item, "changes").items():
        told = cast("dict[str, Any]", change) if isinstance(change, dict) else {}
        moved = text(told, "move_path")
        kind = "move" if moved else _KINDS.get(text(told, "type"), "update")
        fields = {
            "uri": file_uri(moved or path), "kind": kind, "from_uri": file_uri(path) if moved else None,
            "diff": text(told, "unified_diff") or None,
        }  # fmt: skip
        files.append(ChangedFile.model_validate(fields))
    return Changed(text(item, "id"), files)


def _usage(told: dict[str, Any]) -> Usage:
    cached = number(told, "cached_input_tokens")
    return Usage(
        input_tokens=max(0, number(told, "input_tokens") - cached),
        output_tokens=number(told, "output_tokens"),
        cache_read_input_tokens=cached,
    )
