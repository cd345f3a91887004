"""The tables as code sees them: keys, which columns hold JSON or yes/no, and rows to values and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import orjson

from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow, SeenRow, SessionRow

R = TypeVar("R")


@dataclass(frozen=True)
class Table(Generic[R]):
    """One table. `row`: the class of its rows, whose fields are its columns (but `usage` of runs, see `read_run`)."""

    name: str
    key: tuple[str, ...]
    row: type[R]
    json: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self.row))  # pyright: ignore[reportArgumentType]

    def select(self, prefix: str = "") -> str:
        """The columns, for a SELECT whose rows `read` understands."""
        return ", ".join(f'{prefix}"{column}"' for column in self.columns)

    def read(self, values: Sequence[Any]) -> R:
        """A selected row as a value."""
        named = dict(zip(self.columns, values, strict=True))
        for column in self.json:
            if named[column] is not None:
                named[column] = orjson.loads(named[column])
        for column in self.flags:
            named[column] = bool(named[column])
        return self.row(**named)


USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class RunTable(Table[RunRow]):
    """`usage` is four numbers in the table, so that they can be added to and summed, and one object in the row."""

    def select(self, prefix: str = "") -> str:
        counts = "json_array(" + ", ".join(prefix + column for column in USAGE) + ")"
        return ", ".join(counts if column == "usage" else f'{prefix}"{column}"' for column in self.columns)

    def read(self, values: Sequence[Any]) -> RunRow:
        row = super().read(values)
        counts: Any = row.usage
        return replace(row, usage=dict(zip(USAGE_WIRE, counts, strict=True)) if any(counts) else None)


USAGE_WIRE = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")

SESSIONS = Table(
    "sessions",
    ("session_id",),
    SessionRow,
    json=frozenset({"identity", "origin", "plan", "goal"}),
    flags=frozenset({"queue_held"}),
)
RUNS = RunTable("runs", ("run_id",), RunRow, json=frozenset({"error", "usage"}))
CALLS = Table(
    "tool_calls",
    ("call_id",),
    CallRow,
    json=frozenset({"args", "files", "risks", "intents", "targets"}),
    flags=frozenset({"recovered", "uncertain", "dismissed"}),
)
MESSAGES = Table("messages", ("message_id",), MessageRow)
CONFLICTS = Table("conflicts", ("conflict_id",), ConflictRow, json=frozenset({"detail"}))
SEEN = Table("seen_files", ("session_id", "path"), SeenRow, flags=frozenset({"whole"}))

DERIVED = ("sessions", "runs", "tool_calls", "messages", "conflicts", "seen_files", "allowances", "spent")
"""The tables that the log alone determines."""

KEYS: Mapping[str, tuple[str, ...]] = {
    table.name: table.key for table in (SESSIONS, RUNS, CALLS, MESSAGES, CONFLICTS, SEEN)
} | {"allowances": ("session_id", "allow_key"), "spent": ("session_id", "day", "model")}


def stored(value: Any) -> Any:
    """A value of a change as SQLite holds it: JSON text for objects and lists, 0 and 1 for flags."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict | list):
        return _json(value)
    return value


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # An integer beyond 64 bits, which a model may well write into its arguments.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
