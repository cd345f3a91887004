"""A reply of the Messages API, put together from the raw events of its stream. Pure; holds the rules of reliability.md §4.

The SDK's own helpers merge, repair and swallow (a cut tool call becomes `{}`); this does not. A `Completed` comes out only of
a stream that ended properly, and holds calls only if the model stopped for them, each block was closed and its JSON is strict.
Everything else is one typed ModelError; what had been streamed as text stays with the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from standfast.events.types import Usage
from standfast.model.base import Completed, ModelError, RequestedCall, StreamItem, TextDelta, ThinkingDelta
from standfast.model.json_text import parse_object, whole, whole_value

REPLY_CHARS_MAX = 24 * 1024 * 1024
"""More could not be sent back to the API, which takes 32 MB."""
BLOCKS_MAX = 1000
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CALL_ID_CHARS_MAX = 256
"""Of the provider's id; the context gives ids that cannot be sent back a form of its own."""
PROPER_STOPS = frozenset({"end_turn", "stop_sequence", "max_tokens", "tool_use"})

Kind = Literal["text", "thinking", "redacted_thinking", "tool_use"]
DELTA_OF: dict[str, Kind] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


@dataclass(slots=True)
class _Block:
    """A content block while it grows."""

    kind: Kind
    start: dict[str, Any]
    """The block as it was announced."""
    parts: list[str] = field(default_factory=list[str])
    """Text, thinking or raw JSON."""
    signature: list[str] = field(default_factory=list[str])
    carry: str = ""
    """Half a surrogate pair whose other half may come with the next delta."""
    closed: bool = False


class ReplyBuilder:
    """One reply, event by event. After `finished` there is a `Completed` to be had, and no further event is taken."""

    def __init__(self) -> None:
        self.finished = False
        self._started = False
        self._blocks: list[_Block] = []
        self._stop_reason: str | None = None
        self._usage: dict[str, int] = {}
        self._chars = 0
        self._take: dict[str, Callable[[dict[str, Any]], StreamItem | None]] = {
            "content_block_delta": self._delta,
            "content_block_start": self._block_start,
            "content_block_stop": self._block_stop,
            "message_start": self._message_start,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "ping": lambda _event: None,
        }

    def take(self, event: Any) -> StreamItem | None:
        """One decoded event in; what a person may see of it at once out. Raises ModelError."""
        kind = event_type(event)
        handler = self._take.get(kind)
        if handler is None:
            raise unknown("event", kind)
        try:
            return handler(event)
        except (KeyError, TypeError, AttributeError, IndexError):
            raise invalid(f"a {kind} event without its parts") from None

    def completed(self) -> Completed:
        """The whole reply. Raises ModelError where it ended early or in a way that nothing may be made of it."""
        stop = self._stop_reason
        if not self.finished or stop is None:
            raise broken("the stream ended before the reply did")
        _check_stop(stop)
        tools = [block for block in self._blocks if block.kind == "tool_use"]
        if stop == "max_tokens" and tools:
            return self._cut(stop, tools)
        if not all(block.closed for block in self._blocks):
            raise invalid("a block that was never closed")
        if bool(tools) != (stop == "tool_use"):
            raise invalid(f"a reply that stops with {stop} and holds {len(tools)} tool calls")
        calls = [_call(block) for block in tools]
        if len({call.provider_call_id for call in calls}) != len(calls):
            raise invalid("two tool calls with one id")
        arguments = {call.provider_call_id: call.args for call in calls}
        blocks = [made for block in self._blocks if (made := _stored(block, arguments)) is not None]
        return Completed(blocks, stop, Usage.model_validate(self._usage), calls)

    def _cut(self, stop: str, tools: Sequence[_Block]) -> Completed:
        """A reply that reached its length limit within its calls: all of them are named, none has arguments."""
        calls = [RequestedCall(call.provider_call_id, call.tool, {}) for call in map(_named, tools)]
        if len({call.provider_call_id for call in calls}) != len(calls):
            raise invalid("two tool calls with one id")
        empty: dict[str, dict[str, Any]] = {call.provider_call_id: {} for call in calls}
        kept = [block for block in self._blocks if block.closed or block.kind == "tool_use"]
        blocks = [made for block in kept if (made := _stored(block, empty)) is not None]
        return Completed(blocks, stop, Usage.model_validate(self._usage), cut=calls)

    # -- events -------------------------------------------------------------------------------------------------------

    def _message_start(self, event: dict[str, Any]) -> None:
        if self._started:
            raise invalid("a second message in one stream")
        self._started = True
        self._count(event["message"].get("usage"))

    def _block_start(self, event: dict[str, Any]) -> StreamItem | None:
        if not self._started:
            raise invalid("content before the message began")
        if event["index"] != len(self._blocks) or len(self._blocks) >= BLOCKS_MAX:
            raise invalid(f"a block with the index {event['index']!r} where {len(self._blocks)} was due")
        announced = cast("dict[str, Any]", event["content_block"])
        kind = announced.get("type")
        if kind not in ("text", "thinking", "redacted_thinking", "tool_use"):
            raise unknown("block", kind)
        block = _Block(kind, announced)
        self._blocks.append(block)
        if kind == "thinking" and announced.get("signature"):
            block.signature.append(announced["signature"])
        first = announced.get(kind, "") if kind in ("text", "thinking") else ""
        return self._grow(block, first) if first else None

    def _delta(self, event: dict[str, Any]) -> StreamItem | None:
        block, delta = self._open(event), event["delta"]
        kind = delta["type"]
        if DELTA_OF.get(kind) != block.kind:
            raise unknown("delta", kind) if kind not in DELTA_OF else invalid(f"a {kind} in a {block.kind} block")
        if kind == "text_delta":
            return self._grow(block, delta["text"])
        if kind == "thinking_delta":
            return self._grow(block, delta["thinking"])
        if kind == "signature_delta":
            self._weigh(delta["signature"])
            block.signature.append(delta["signature"])
            return None
        self._weigh(delta["partial_json"])
        block.parts.append(delta["partial_json"])
        return None

    def _block_stop(self, event: dict[str, Any]) -> StreamItem | None:
        block = self._open(event)
        block.closed = True
        if not block.carry:
            return None
        rest, block.carry = whole(block.carry), ""
        return _shown(block, rest)

    def _message_delta(self, event: dict[str, Any]) -> None:
        if not self._started:
            raise invalid("an end before the message began")
        reason = event["delta"].get("stop_reason")
        if reason is not None:
            self._stop_reason = str(reason)
        self._count(event.get("usage"))

    def _message_stop(self, _event: dict[str, Any]) -> None:
        if not self._started:
            raise invalid("an end before the message began")
        self.finished = True

    # -- parts --------------------------------------------------------------------------------------------------------

    def _open(self, event: Mapping[str, Any]) -> _Block:
        index = event["index"]
        if not isinstance(index, int) or not 0 <= index < len(self._blocks):
            raise invalid(f"a part of a block {index!r} that was never begun")
        block = self._blocks[index]
        if block.closed:
            raise invalid(f"a part of block {index} after its end")
        return block

    def _grow(self, block: _Block, text: str) -> StreamItem | None:
        self._weigh(text)
        text = block.carry + text
        block.carry = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, block.carry = text[:-1], text[-1]
        return _shown(block, whole(text)) if text else None

    def _weigh(self, text: str) -> None:
        self._chars += len(text)
        if self._chars > REPLY_CHARS_MAX:
            raise invalid(f"more than {REPLY_CHARS_MAX} characters", retry=False)

    def _count(self, usage: Any) -> None:
        """Counts are totals so far: the later one holds."""
        for name in Usage.model_fields:
            value = usage.get(name) if usage else None
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                self._usage[name] = value


def event_type(event: Any) -> str:
    """The type of a decoded event, empty where it has none."""
    kind = cast("dict[str, Any]", event).get("type") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) else ""


def _shown(block: _Block, text: str) -> StreamItem:
    block.parts.append(text)
    return TextDelta(text) if block.kind == "text" else ThinkingDelta(text)


def _named(block: _Block) -> RequestedCall:
    """A tool_use block as a call without arguments. Raises ModelError."""
    name, call_id = block.start.get("name"), block.start.get("id")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise invalid("a tool call without a proper tool name")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= CALL_ID_CHARS_MAX or whole(call_id) != call_id:
        raise invalid("a tool call without a proper id")
    return RequestedCall(call_id, name, {})


def _call(block: _Block) -> RequestedCall:
    """A closed tool_use block as a call. Arguments come as deltas, or whole with the announcement. Raises ModelError."""
    named = _named(block)
    call_id, name = named.provider_call_id, named.tool
    raw, announced = "".join(block.parts), block.start.get("input")
    try:
        if raw:
            return RequestedCall(call_id, name, parse_object(raw))
        if announced is None or isinstance(announced, dict):
            return RequestedCall(call_id, name, whole_value(announced or {}))
        raise ValueError("the arguments are not an object")
    except ValueError as error:
        raise invalid(f"arguments of {name} that cannot be read ({error})", tool=name) from None


def _stored(block: _Block, arguments: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The block to keep and to send back; None for a text in which there is nothing to see (the API refuses it back)."""
    text = "".join(block.parts)
    if block.kind == "text":
        return {"type": "text", "text": text} if text.strip() else None
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": text, "signature": "".join(block.signature)}
    if block.kind == "redacted_thinking":
        return {"type": "redacted_thinking", "data": whole(str(block.start.get("data", "")))}
    call_id = block.start["id"]
    return {"type": "tool_use", "id": call_id, "name": block.start["name"], "input": arguments[call_id]}


def _check_stop(stop: str) -> None:
    """Stops after which there is no reply to go on from. Raises ModelError."""
    if stop in PROPER_STOPS:
        return
    if stop == "refusal":
        raise ModelError(
            "Refusal",
            "The model refused to answer. Nothing was carried out; what it had said is in the history. "
            "Word the request in another way.",
        )
    if stop == "model_context_window_exceeded":
        raise ModelError(
            "ContextTooLong",
            "The reply filled the rest of the model's context. Nothing of it was carried out; the history is complete. "
            "Compact the session, or go on in a new one.",
        )
    raise ModelError(
        "UnknownStop",
        f"The model stopped in a way that this version does not handle ({whole(stop)[:100]}). Nothing was carried out; "
        "what it had said is in the history. Send a message to go on, or update Standfast.",
        stopReason=whole(stop)[:100],
    )


def invalid(what: str, *, retry: bool = True, **data: Any) -> ModelError:
    """The reply came, but it is not a reply. Sampled anew it may well be one."""
    return ModelError(
        "InvalidReply",
        f"The model's server sent {what}. Nothing of the reply was carried out; what it had said is in the history. "
        "If this happens again, the server does not speak the Messages API properly.",
        retry=retry,
        **data,
    )


def unknown(what: str, kind: Any) -> ModelError:
    """Something of a later API: stop and show, since to guess would be to lose it."""
    name = whole(str(kind))[:100]
    return ModelError(
        "InvalidReply",
        f"The model's server sent {'an' if what == 'event' else 'a'} {what} that this version does not know ({name}). "
        "Nothing of the reply was carried out; what it had said is in the history. Update Standfast, or choose another model.",
        unknown=what,
        name=name,
    )


def broken(how: str) -> ModelError:
    """The stream did not come to its end."""
    return ModelError(
        "StreamBroken",
        f"The model's reply broke off: {how}. Nothing of it was carried out; what it had said is in the history.",
        retry=True,
    )
