"""Fields of records that somebody else wrote: asked for by type, absent rather than wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast


def text(record: Mapping[str, Any], name: str) -> str:
    """A text field; "" for anything else."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def number(record: Mapping[str, Any], name: str) -> int:
    """A count; 0 for anything else."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def part(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object; {} for anything else."""
    value = record.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def parts(record: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list; [] for anything else."""
    value = record.get(name)
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", each) for each in cast("list[Any]", value) if isinstance(each, dict)]


def joined(content: Any) -> str:
    """The text of content that is a string or a list of blocks with `text`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [cast("dict[str, Any]", each) for each in cast("list[Any]", content) if isinstance(each, dict)]
    return "\n".join(found for block in blocks if (found := text(block, "text")))


def at_ms(record: Mapping[str, Any], name: str = "timestamp") -> int:
    """An ISO time or ms since 1970; 0 where there is none."""
    value = record.get(name)
    if isinstance(value, int):
        return value
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return 0
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
