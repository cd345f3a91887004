"""Text and JSON that come from a model, made safe to keep: strict where something will be carried out. Pure."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

import orjson

SURROGATE = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """`text` with paired surrogates joined and lone ones replaced by U+FFFD, so that it can be stored and sent (a38)."""
    if not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_value(value: Any) -> Any:
    """`whole` for every string in a JSON value, keys too."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(key): whole_value(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [whole_value(inner) for inner in cast("list[Any]", value)]
    return value


def loads(data: bytes) -> Any:
    """JSON from the wire. The quick parser refuses lone surrogates; those are let through here and replaced later.

    Raises ValueError.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _strict(data.decode("utf-8"))


def parse_object(raw: str) -> dict[str, Any]:
    """A tool call's arguments: one JSON object, no NaN or infinity, no key twice, and such that it can be stored.

    Never repairs anything. Raises ValueError.
    """
    value = _strict(raw)
    if not isinstance(value, dict):
        raise ValueError("the arguments are not an object")
    cleaned: dict[str, Any] = whole_value(value)
    try:
        orjson.dumps(cleaned)
    except TypeError as error:  # what cannot be stored must not be carried out either: too deep, beyond 64 bit
        raise ValueError(str(error)) from None
    return cleaned


def _strict(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
