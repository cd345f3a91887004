"""pi sessions, version 3: a header, then entries in a tree by `id` and `parentId` (R3.6). Pure.

The branch that is taken in is the one that the file's last entry is on. Entries name their parents before them, so one pass over the
numbers finds the branch, and a second one reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from standfast.events.types import Usage
from standfast.foreign.fields import at_ms, joined, number, part, parts, text
from standfast.foreign.spoken import Answered, Began, Call, Item, Json, Replied, Said, Summed

PROGRAM = "pi"


def is_pi(record: Json) -> bool:
    """Whether a file's first record is pi's."""
    return record.get("type") == "session" and "cwd" in record and "version" in record


def branch(records: Iterable[Json]) -> frozenset[str]:
    """The ids on the way from the last entry to the first. Keeps two short texts an entry."""
    parents: dict[str, str] = {}
    last = ""
    for record in records:
        if record.get("type") != "session" and (found := text(record, "id")):
            parents[found], last = text(record, "parentId"), found
    on_it: set[str] = set()
    while last and last not in on_it:
        on_it.add(last)
        last = parents.get(last, "")
    return frozenset(on_it)


def read(records: Iterable[Json], on_it: frozenset[str] | None = None) -> Iterator[Item]:
    """The items of the branch `on_it` (of all entries, if None)."""
    for record in records:
        when, kind = at_ms(record), record.get("type")
        if kind == "session":
            yield Began(when, PROGRAM, text(record, "id"), text(record, "cwd"))
        elif on_it is not None and text(record, "id") not in on_it:
            continue
        elif kind == "message":
            yield from _message(part(record, "message"), when)
        elif kind in ("compaction", "branch_summary") and text(record, "summary"):
            yield Summed(when, text(record, "summary"))


def _message(message: dict[str, Any], when: int) -> Iterator[Item]:
    match message.get("role"):
        case "user":
            if said := joined(message.get("content")).strip():
                yield Said(when, said)
        case "assistant":
            yield _assistant(message, when)
        case "toolResult":
            status = "error" if message.get("isError") else "ok"
            yield Answered(when, text(message, "toolCallId"), joined(message.get("content")), status)
        case _:
            pass


def _assistant(message: dict[str, Any], when: int) -> Replied:
    content = parts(message, "content")
    calls = [
        Call(text(block, "id"), text(block, "name") or "unknown", part(block, "arguments"))
        for block in content
        if block.get("type") == "toolCall"
    ]
    told = part(message, "usage")
    usage = Usage(
        input_tokens=number(told, "input"), output_tokens=number(told, "output"),
        cache_read_input_tokens=number(told, "cacheRead"), cache_creation_input_tokens=number(told, "cacheWrite"),
    )  # fmt: skip
    said = joined([block for block in content if block.get("type") == "text"])
    return Replied(when, said, calls, usage, text(message, "model") or None)
