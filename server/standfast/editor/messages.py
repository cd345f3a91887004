"""One body as a JSON-RPC message, or the refusal it deserves (design.md "Transport", ATK-49, ATK-51). Pure.

Strict: UTF-8, no NaN, no lone surrogates, no key twice in one object, at most 64 levels deep; no batches; an id is a string
or a whole number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import orjson

from standfast.protocol.errors import INVALID_REQUEST, PARSE_ERROR

DEPTH_MAX = 64
_ID_MAX = 2**53

MessageId = int | str


@dataclass(frozen=True, slots=True)
class Request:
    id: MessageId
    method: str
    params: Any


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: Any


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request of ours. `error` is None where there is a result."""

    id: MessageId
    result: Any
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Refused:
    """To be answered with this error; `id` None: the message's own is not known."""

    id: MessageId | None
    code: int
    message: str


Message = Request | Notification | Response | Refused


class _Twice(ValueError):
    """A key stands twice in one object."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found


_pairs_once = json.JSONDecoder(object_pairs_hook=_unique)


def read_message(body: bytes) -> Message | None:
    """Read one body. None: a response to nothing, which nobody may answer."""
    try:
        value: Any = orjson.loads(body)
    except ValueError:
        return Refused(None, PARSE_ERROR, "The message is not JSON in UTF-8.")
    if isinstance(value, list):
        return Refused(None, INVALID_REQUEST, "Batches are not spoken here: send one message a frame.")
    if not isinstance(value, dict):
        return Refused(None, INVALID_REQUEST, "A message is a JSON object.")
    message = cast(dict[str, Any], value)
    fault = _fault(body, message)
    return Refused(_id_for_refusal(message), INVALID_REQUEST, fault) if fault else _classify(message)


def _fault(body: bytes, message: dict[str, Any]) -> str | None:
    """What our own rules hold against sound JSON."""
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and _deeper_than(message, DEPTH_MAX):
        return f"The message is nested deeper than {DEPTH_MAX} levels."
    try:
        _pairs_once.decode(body.decode())
    except _Twice:
        return "A key stands twice in one object."
    return None


def _deeper_than(value: Any, limit: int) -> bool:
    """Whether containers are nested more than `limit` deep; level by level, so that nothing recurses."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _members(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _members(value: Any) -> Iterable[Any]:
    return cast(dict[str, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)


def _classify(message: dict[str, Any]) -> Message | None:
    if "id" in message and not _is_id(message["id"]):
        if "method" not in message and "error" in message:
            return None  # the client tells that it could not read us; there is nothing to say to that
        return Refused(None, INVALID_REQUEST, "An id is a string or a whole number.")
    if message.get("jsonrpc") != "2.0":
        return Refused(_id_for_refusal(message), INVALID_REQUEST, 'The message lacks "jsonrpc": "2.0".')
    message_id: MessageId | None = message.get("id")
    if "method" not in message:
        return _response(message_id, message)
    method, params = message["method"], message.get("params")
    if not isinstance(method, str):
        return Refused(message_id, INVALID_REQUEST, "A method is a string.")
    if params is not None and not isinstance(params, dict | list):
        return Refused(message_id, INVALID_REQUEST, "Params are an object.")
    return Notification(method, params) if message_id is None else Request(message_id, method, params)


def _response(message_id: MessageId | None, message: dict[str, Any]) -> Message | None:
    if "result" not in message and "error" not in message:
        return Refused(message_id, INVALID_REQUEST, "A message has a method, a result or an error.")
    if message_id is None:
        return None
    given: Any = message.get("error")
    if given is None:
        return Response(message_id, message.get("result"), None)
    odd = {"code": INVALID_REQUEST, "message": "an error that is no object"}
    return Response(message_id, None, cast(dict[str, Any], given) if isinstance(given, dict) else odd)


def _id_for_refusal(message: dict[str, Any]) -> MessageId | None:
    """The id to refuse a message by: only a request's, since a response's id is one of ours."""
    return message["id"] if "method" in message and "id" in message and _is_id(message["id"]) else None


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 1024
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _ID_MAX
