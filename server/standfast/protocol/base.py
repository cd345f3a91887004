"""What every wire type shares: frozen, camelCase on the wire and snake_case in Python, strict, unknown fields ignored.

Null and absent mean the same to a reader. A writer leaves an optional field out (`Maybe`); a field that is typed
`X | None` without `Maybe` is always written, null where there is nothing (e.g. `before` of a file that was added).
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

PROTOCOL_VERSION = 1
"""The major; additions need no number (design.md "Wire, version 1")."""

PAGE_DEFAULT = 200
PAGE_MAX = 1000
"""Events, sessions, runs or messages in one answer; a larger `limit` gets this many."""

T = TypeVar("T")


def _is_none(value: object) -> bool:
    return value is None


Maybe = Annotated[T | None, Field(exclude_if=_is_none)]
"""An optional field: left out of the JSON where it is None."""

NUMBER_MAX = 2**53 - 1
"""The largest whole number that every client's JSON keeps exact (and that the store can hold)."""

Limit = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
"""Size of a page; 200 if not given, at most 1000."""

Seq = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
"""Place of an event in its session, from 1; 0 stands for the beginning."""

Id = Annotated[str, Field(min_length=1, max_length=200)]
"""An opaque id."""

Query = Annotated[str, Field(max_length=1000)]
"""Words to look for; a longer one is refused, since a search by it would hold up the others."""

Said = Annotated[str, Field(pattern=r"\S")]
"""Text of the person's that says something: not empty, not only white space."""


class Wire(BaseModel, frozen=True):
    """Base of all payloads. Strict: a number is no string, `5.0` no integer."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        strict=True,
        defer_build=True,  # built when first used: a daemon that starts needs few of them
    )


def wire_json(value: Wire) -> bytes:
    """The UTF-8 JSON of a payload."""
    return value.__pydantic_serializer__.to_json(value, by_alias=True)
