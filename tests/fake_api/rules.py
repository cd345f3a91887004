"""What the Messages API refuses, in its own words as far as they are known. Pure: a parsed request in, a sentence or None out.

Stricter than the real one in three places, on purpose: roles must alternate (the real one merges), the last message must
be the user's (some models allow a prefill), and a tool_use must name a tool of the request or one that the fake asked for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
TOOL_USE_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
CACHE_MARKS_MAX = 4
REQUEST_BYTES_MAX = 32 * 1024 * 1024

FIELDS = frozenset(
    {"model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "metadata", "stop_sequences"}
    | {"temperature", "top_k", "top_p", "thinking", "service_tier", "cache_control", "output_config"}
)
BLOCK_FIELDS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "cache_control", "title", "context", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
USER_BLOCKS = frozenset({"text", "image", "document", "tool_result"})
ASSISTANT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
RESULT_BLOCKS = frozenset({"text", "image", "document"})


@dataclass
class Sent:
    """What the fake itself has sent so far: what may come back although nothing else vouches for it."""

    thinking: set[tuple[str, str]] = field(default_factory=set)
    """(text, signature)"""
    redacted: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)


class Refused(Exception):
    """The request breaks a rule; the text is the API's message."""


def sign(thinking: str) -> str:
    """The signature of a thinking text. Anybody can check it, so it also holds for a fake that was started anew."""
    return "sig" + hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()


def parse(raw: bytes) -> dict[str, Any]:
    """The body as a strict UTF-8 JSON parser reads it. Raises Refused."""
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise Refused(f"The request body is not valid JSON: invalid UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refused("Input should be a valid dictionary")
    for text in _strings(body):
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise Refused("The request body is not valid JSON: no low surrogate in string")
    return body


def violation(body: dict[str, Any], sent: Sent | None = None) -> str | None:
    """Why the API refuses this request, or None."""
    try:
        check(body, sent or Sent())
    except Refused as refused:
        return str(refused)
    return None


def check(body: dict[str, Any], sent: Sent) -> None:
    """Raises Refused for the first rule that the request breaks."""
    for rule in (_fields, _tools, _system, _messages, _cache_marks):
        rule(body)
    names = {each["name"] for each in body.get("tools", [])} | sent.tools
    for at, message in enumerate(body["messages"]):
        for place, block in _blocks(message["content"], f"messages.{at}.content"):
            _thinking(place, block, sent)
            if block["type"] == "tool_use" and block["name"] not in names:
                raise Refused(f"{place}: tool {block['name']!r} is not among the tools of this request")
    _pairs(body["messages"])


def _no_constant(name: str) -> Any:
    raise ValueError(f"unexpected constant {name}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key in object")
    return found


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield key
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case _:
            pass


def _want(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


def _fields(body: dict[str, Any]) -> None:
    for name in ("model", "messages", "max_tokens"):
        _want(name in body, f"{name}: Field required")
    for name in body:
        _want(name in FIELDS, f"{name}: Extra inputs are not permitted")
    _want(isinstance(body["model"], str) and body["model"] != "", "model: Input should be a valid string")
    limit = body["max_tokens"]
    _want(type(limit) is int and limit >= 1, "max_tokens: Input should be greater than or equal to 1")
    _want(type(body.get("stream", False)) is bool, "stream: Input should be a valid boolean")


def _tools(body: dict[str, Any]) -> None:
    names: list[str] = []
    for at, each in enumerate(_list(body.get("tools", []), "tools")):
        place = f"tools.{at}"
        _want(isinstance(each, dict), f"{place}: Input should be a valid dictionary")
        for name in each:
            allowed = name in {"name", "description", "input_schema", "cache_control", "type", "strict"}
            _want(allowed, f"{place}.{name}: Extra inputs are not permitted")
        name = each.get("name")
        _want(
            isinstance(name, str) and NAME.match(name) is not None,
            f"{place}.custom.name: String should match pattern '{NAME.pattern}'",
        )
        schema = each.get("input_schema")
        _want(isinstance(schema, dict), f"{place}.custom.input_schema: Field required")
        _want(schema.get("type") == "object", f"{place}.custom.input_schema.type: Input should be 'object'")
        names.append(each["name"])
    _want(len(names) == len(set(names)), "tools: Tool names must be unique.")


def _system(body: dict[str, Any]) -> None:
    system = body.get("system", "")
    if isinstance(system, str):
        return
    for place, block in _blocks(_list(system, "system"), "system"):
        _want(block["type"] == "text", f"{place}.type: Input should be 'text'")
        _shape(place, block)


def _messages(body: dict[str, Any]) -> None:
    messages = _list(body["messages"], "messages")
    _want(len(messages) > 0, "messages: at least one message is required")
    expected = "user"
    for at, message in enumerate(messages):
        _want(
            isinstance(message, dict) and set(message) == {"role", "content"},
            f"messages.{at}: Input should have exactly `role` and `content`",
        )
        role = message["role"]
        _want(role in ("user", "assistant"), f"messages.{at}.role: Input should be 'user' or 'assistant'")
        if at == 0:
            _want(role == "user", "messages: first message must use the user role")
        _want(role == expected, "messages: roles must alternate between user and assistant")
        expected = "assistant" if role == "user" else "user"
        _content(at, message)
    _last(messages)


def _content(at: int, message: dict[str, Any]) -> None:
    content, place = message["content"], f"messages.{at}.content"
    _want(content not in ("", []), f"messages.{at}: all messages must have non-empty content")
    allowed = USER_BLOCKS if message["role"] == "user" else ASSISTANT_BLOCKS
    blocks = list(_blocks(content, place))
    for where, block in blocks:
        _want(
            block["type"] in allowed,
            f"messages.{at}: `{block['type']}` blocks can not be in `{message['role']}` messages",
        )
        _shape(where, block)
    _want(
        message["role"] == "user" or blocks[-1][1]["type"] not in ("thinking", "redacted_thinking"),
        f"messages.{at}: The final block in an assistant message cannot be `thinking`.",
    )


def _last(messages: list[dict[str, Any]]) -> None:
    last = messages[-1]
    if last["role"] == "user":
        return
    text = "".join(block.get("text", "") for _, block in _blocks(last["content"], ""))
    _want(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")
    raise Refused(
        "This model does not support assistant message prefill. The conversation must end with a user message."
    )


def _list(value: Any, place: str) -> list[Any]:
    _want(isinstance(value, list), f"{place}: Input should be a valid list")
    return value


def _blocks(content: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The content's blocks with their places; a string counts as one text block."""
    if isinstance(content, str):
        yield place, {"type": "text", "text": content}
        return
    for at, block in enumerate(_list(content, place)):
        _want(
            isinstance(block, dict) and isinstance(block.get("type"), str),
            f"{place}.{at}: Input should be a valid content block",
        )
        yield f"{place}.{at}", block


def _shape(place: str, block: dict[str, Any]) -> None:
    """One block by itself."""
    kind = block["type"]
    _want(
        kind in BLOCK_FIELDS, f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    )
    for name in block:
        _want(name in BLOCK_FIELDS[kind], f"{place}.{kind}.{name}: Extra inputs are not permitted")
    _SHAPES.get(kind, lambda _place, _block: None)(place, block)


def _text_shape(place: str, block: dict[str, Any]) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise Refused(f"{place}.text.text: Input should be a valid string")
    _want(text != "", "messages: text content blocks must be non-empty")
    _want(text.strip() != "", "messages: text content blocks must contain non-whitespace text")


def _thinking_shape(place: str, block: dict[str, Any]) -> None:
    _want(isinstance(block.get("signature"), str), f"{place}.thinking.signature: Field required")
    _want(isinstance(block.get("thinking"), str), f"{place}.thinking.thinking: Field required")
    _want(block["thinking"] != "", f"{place}.thinking: each thinking block must contain thinking")


def _tool_use_shape(place: str, block: dict[str, Any]) -> None:
    for name in ("id", "name"):
        pattern = TOOL_USE_ID if name == "id" else NAME
        value = block.get(name)
        _want(
            isinstance(value, str) and pattern.match(value) is not None,
            f"{place}.tool_use.{name}: String should match pattern '{pattern.pattern}'",
        )
    _want(isinstance(block.get("input"), dict), f"{place}.tool_use.input: Input should be a valid dictionary")


def _tool_result_shape(place: str, block: dict[str, Any]) -> None:
    _want(isinstance(block.get("tool_use_id"), str), f"{place}.tool_result.tool_use_id: Field required")
    _want(type(block.get("is_error", False)) is bool, f"{place}.tool_result.is_error: Input should be a valid boolean")
    content = block.get("content", "")
    if isinstance(content, str):
        return
    for inner_place, inner in _blocks(content, f"{place}.tool_result.content"):
        _want(inner["type"] in RESULT_BLOCKS, f"{inner_place}: `{inner['type']}` is not allowed in a tool_result")
        _shape(inner_place, inner)


_SHAPES: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "text": _text_shape,
    "thinking": _thinking_shape,
    "tool_use": _tool_use_shape,
    "tool_result": _tool_result_shape,
}


def _thinking(place: str, block: dict[str, Any], sent: Sent) -> None:
    """Thinking comes back byte for byte as it was sent."""
    if block["type"] == "thinking":
        pair = (block["thinking"], block["signature"])
        _want(pair in sent.thinking or pair[1] == sign(pair[0]), f"{place}: Invalid `signature` in `thinking` block")
    if block["type"] == "redacted_thinking":
        _want(block.get("data") in sent.redacted, f"{place}: Invalid `data` in `redacted_thinking` block")


def _pairs(messages: list[dict[str, Any]]) -> None:
    """Each tool_use is answered by one tool_result, first in the very next message, and no result stands alone."""
    used: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        blocks = [block for _, block in _blocks(message["content"], "")]
        if message["role"] == "user":
            _answers(at, blocks, waiting)
            waiting = []
            continue
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for each in waiting:
            _want(each not in used, f"messages.{at}.content: `tool_use` ids must be unique")
            used.add(each)


def _answers(at: int, blocks: list[dict[str, Any]], waiting: list[str]) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for each in results:
        _want(
            each in waiting,
            f"messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {each}. Each `tool_result` "
            "block must have a corresponding `tool_use` block in the previous message.",
        )
        _want(
            results.count(each) == 1,
            f"messages.{at}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with "
            f"id: {each}",
        )
    first = [block["tool_use_id"] for block in blocks[: len(results)] if block["type"] == "tool_result"]
    missing = [each for each in waiting if each not in first]
    _want(
        not missing,
        f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    )


def _cache_marks(body: dict[str, Any]) -> None:
    marks = list(_marks({name: body.get(name) for name in ("tools", "system", "messages", "cache_control")}))
    for mark in marks:
        good = isinstance(mark, dict) and mark.get("type") == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h")
        _want(good, "cache_control: Input should be {'type': 'ephemeral'}")
    _want(
        len(marks) <= CACHE_MARKS_MAX,
        f"A maximum of {CACHE_MARKS_MAX} blocks with cache_control may be provided. Found {len(marks)}.",
    )


def _marks(value: Any) -> Iterator[Any]:
    """All cache_control values at blocks and tools; tool arguments are the caller's data and not looked into."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "cache_control" and inner is not None:
                yield inner
            elif key not in ("input", "input_schema"):
                yield from _marks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marks(inner)
