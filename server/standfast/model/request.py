"""From a ModelRequest to the body that is sent: safe to send, and with the marks of the prompt cache. Pure.

The context builder answers for the order and pairing of messages; this is the last gate for single blocks (a35, a38).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from standfast.model.base import ModelRequest
from standfast.model.json_text import whole_value

CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
Message = Mapping[str, Any]


def api_body(request: ModelRequest, thinking: str = "default") -> dict[str, Any]:
    """The arguments of `messages.create`. Four cache marks, the API's limit: tools, system, the last two user messages."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": with_cache_marks(api_messages(request.messages)),
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": whole_value(request.system), **CACHE_MARK}]
    if request.tools:
        *first, last = request.tools
        body["tools"] = [*first, {**last, **CACHE_MARK}]
    if thinking == "adaptive":
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    elif thinking == "off":
        body["thinking"] = {"type": "disabled"}
    return body


def api_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages without what the API refuses in a block: lone surrogates, empty text, thinking that cannot be checked.

    A thinking block goes back byte for byte or not at all. Messages stay as many as they were, in their order.
    """
    return [_message(message) for message in _storable(messages)]


def with_cache_marks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the end of the last two user messages: what is sent now, and what was sent last time."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"][-2:]
    return [{**each, "content": _marked(each["content"])} if at in users else each for at, each in enumerate(messages)]


def _storable(messages: Sequence[Message]) -> Sequence[Message]:
    """The same messages, or copies with lone surrogates replaced. orjson finds those faster than a walk would."""
    try:
        orjson.dumps(messages if isinstance(messages, list) else list(messages))
    except TypeError:
        return [whole_value(dict(message)) for message in messages]
    return messages


def _message(message: Message) -> dict[str, Any]:
    content: Any = message["content"]
    if isinstance(content, str):
        return {"role": message["role"], "content": content if content.strip() else "(empty message)"}
    blocks = [block for block in cast("list[dict[str, Any]]", content) if _is_sendable(block)]
    while blocks and message["role"] == "assistant" and _is_thinking(blocks[-1]):
        blocks.pop()  # the API refuses an assistant message that ends in thinking
    return {"role": message["role"], "content": blocks or [{"type": "text", "text": "(no text)"}]}


def _is_thinking(block: Mapping[str, Any]) -> bool:
    return block["type"] in ("thinking", "redacted_thinking")


def _is_sendable(block: Mapping[str, Any]) -> bool:
    if block["type"] == "text":
        return bool(block["text"].strip())
    if block["type"] == "thinking":
        return bool(block.get("thinking")) and bool(block.get("signature"))
    return True


def _marked(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content, **CACHE_MARK}]
    *first, last = cast("list[dict[str, Any]]", content)
    return [*first, {**last, **CACHE_MARK}]
