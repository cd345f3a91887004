"""Claude Code transcripts: user and assistant records, a chain by `uuid` and `parentUuid` (R3.6). Pure.

Records of side agents and those that the program made up are left out. Order is the file's: later branches stand after earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from standfast.events.types import ChangedFile, Usage
from standfast.foreign.fields import at_ms, joined, number, part, parts, text
from standfast.foreign.retell import file_uri
from standfast.foreign.spoken import Answered, Began, Call, Changed, Item, Json, Replied, Said, Summed

PROGRAM = "Claude Code"
SYNTHETIC = "<synthetic>"
TITLES = ("summary", "ai-title", "custom-title")


def is_claude_code(record: Json) -> bool:
    """Whether a record is Claude Code's."""
    return ("sessionId" in record and record.get("type") in (
        "user", "assistant", "queue-operation", "mode", "attachment", "system", "last-prompt", "file-history-snapshot",
    )) or (record.get("type") == "summary" and "leafUuid" in record)  # fmt: skip


def read(records: Iterable[Json]) -> Iterator[Item]:
    """The items of a transcript."""
    begun = False
    for record in records:
        if not begun and record.get("cwd"):
            begun = True
            yield Began(at_ms(record), PROGRAM, text(record, "sessionId"), text(record, "cwd"))
        if record.get("isSidechain") or record.get("isMeta"):
            continue
        message, when = part(record, "message"), at_ms(record)
        if record.get("type") == "user":
            yield from _user(record, message, when)
        elif record.get("type") == "assistant" and message.get("model") != SYNTHETIC:
            yield _assistant(message, when)


def _user(record: Json, message: dict[str, Any], when: int) -> Iterator[Item]:
    results = [block for block in parts(message, "content") if block.get("type") == "tool_result"]
    for block in results:
        if files := _files(record):
            yield Changed(text(block, "tool_use_id"), files)
        yield _answered(record, block, when)
    said = joined(message.get("content")).strip()
    if not said:
        return
    if record.get("isCompactSummary"):
        yield Summed(when, said)
    else:
        yield Said(when, said)


def _answered(record: Json, block: dict[str, Any], when: int) -> Answered:
    denial = text(record, "toolDenialKind")
    failed = "denied" if denial.startswith("user") else "error"
    status = failed if block.get("is_error") else "ok"
    lost = denial == "interrupted"
    return Answered(when, text(block, "tool_use_id"), joined(block.get("content")), status, lost=lost)


def _files(record: Json) -> list[ChangedFile]:
    told = part(record, "toolUseResult")
    path = text(told, "filePath")
    if not path or not ("structuredPatch" in told or told.get("type") in ("create", "update")):
        return []
    kind = "add" if told.get("type") == "create" else "update"
    return [ChangedFile(uri=file_uri(path), kind=kind, diff=_diff(told) or None)]


def _diff(told: dict[str, Any]) -> str:
    hunks: list[str] = []
    for hunk in parts(told, "structuredPatch"):
        old, new = number(hunk, "oldStart"), number(hunk, "newStart")
        lines: Any = hunk.get("lines")
        if isinstance(lines, list):
            head = f"@@ -{old},{number(hunk, 'oldLines')} +{new},{number(hunk, 'newLines')} @@"
            hunks.append("\n".join([head, *map(str, lines)]))  # pyright: ignore[reportUnknownArgumentType]
    return "\n".join(hunks)


def _assistant(message: dict[str, Any], when: int) -> Replied:
    content = parts(message, "content")
    calls = [
        Call(text(block, "id"), text(block, "name") or "unknown", part(block, "input"))
        for block in content
        if block.get("type") == "tool_use"
    ]
    said = joined([block for block in content if block.get("type") == "text"])
    told = part(message, "usage")
    usage = Usage(**{name: number(told, name) for name in Usage.model_fields})
    return Replied(when, said, calls, usage, text(message, "model") or None)
