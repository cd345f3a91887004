"""What the fake answers: a list of steps, built whole by `reply` and then bent by the methods of `Reply`.

A step is an event (dict), bytes sent as they are, a `Gate`, a `Pause` or an `Ending`. So a fault is a change to a list:

    reply("Hello", "world").ending(Ending.CUT, after="text_delta")       cut after the first text delta
    reply(tools=[tool("f", a=1)]).ending(Ending.EOF, after="input_json_delta")
    reply("a").insert({"type": "brand_new_event"}, after="message_start")
    reply("a", "b").insert(gate, after="text_delta")                      hold until the test says `gate.release()`
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fake_api.rules import sign

WAIT_S = 20.0
"""How long anything here waits for the other side before it gives up loudly."""


class Ending(enum.Enum):
    """How an answer may end other than properly."""

    EOF = "eof"
    """The body ends cleanly, without what should have followed."""
    CUT = "cut"
    """The connection closes in the middle of the body."""
    RESET = "reset"
    """RST instead of FIN."""
    STALL = "stall"
    """Nothing more comes, until the client goes away."""


class Gate:
    """Holds a stream at its place until the test releases it, and tells the test when the stream is there."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait(self, timeout_s: float = WAIT_S) -> None:
        """Block until a stream stands at this gate."""
        if not self._reached.wait(timeout_s):
            raise TimeoutError(f"no stream came to gate {self.name!r} within {timeout_s} s")

    async def reached(self, timeout_s: float = WAIT_S) -> None:
        """`wait` for tests that run a loop."""
        await asyncio.to_thread(self.wait, timeout_s)

    def release(self) -> None:
        """Let the stream go on."""
        self._released.set()

    def hold(self) -> None:
        """The server's side: stand here until released."""
        self._reached.set()
        self._released.wait(WAIT_S * 3)


@dataclass(frozen=True)
class Pause:
    """Seconds between two steps (for paced streams; tests wait on gates, not on time)."""

    seconds: float


Step = dict[str, Any] | bytes | Gate | Pause | Ending


@dataclass(frozen=True)
class ToolUse:
    """A tool call in a reply. `raw`: the JSON text as sent, word for word (garbage too), else `input` is encoded."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    raw: str | None = None
    pieces: int = 3
    """In how many deltas the JSON text comes."""


def tool(name: str, /, *, id: str | None = None, raw: str | None = None, pieces: int = 3, **args: Any) -> ToolUse:
    """A tool call: `tool("read_file", path="a.py")`. Without `id` it gets one when the reply is sent, unique in the fake."""
    return ToolUse(name, args, id, raw, pieces)


@dataclass(frozen=True)
class Reply:
    """A stream (status 200) as its steps. Build with `reply`."""

    steps: tuple[Step, ...]
    chunk_bytes: int | None = None
    """Split the bytes of the body into chunks of this size, at any place (also within a character)."""

    def ending(self, how: Ending, *, after: str | int = "message_stop", nth: int = 1) -> Reply:
        """The stream ends so after the given step; what came later is left out."""
        at = self._place(after, nth)
        return replace(self, steps=(*self.steps[:at], how))

    def insert(self, *steps: Step, after: str | int, nth: int = 1) -> Reply:
        """Further steps after the given one."""
        at = self._place(after, nth)
        return replace(self, steps=(*self.steps[:at], *steps, *self.steps[at:]))

    def without(self, kind: str) -> Reply:
        """All events of a type (or delta type) left out."""
        return replace(self, steps=tuple(step for step in self.steps if kind not in names_of(step)))

    def paced(self, per_second: float) -> Reply:
        """At most so many events a second."""
        steps = [each for step in self.steps for each in (step, Pause(1 / per_second))]
        return replace(self, steps=tuple(steps))

    def chunked(self, size: int) -> Reply:
        """The body in pieces of `size` bytes."""
        return replace(self, chunk_bytes=size)

    def _place(self, after: str | int, nth: int) -> int:
        if isinstance(after, int):
            return after
        places = [at for at, step in enumerate(self.steps, 1) if after in names_of(step)]
        if len(places) < nth:
            raise ValueError(f"this reply has no {after!r} number {nth}")
        return places[nth - 1]


@dataclass(frozen=True)
class HttpReply:
    """An answer that is no stream."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NoAnswer:
    """The request is read and nothing comes back (`STALL`), or the connection ends (`CUT`, `RESET`)."""

    how: Ending = Ending.STALL


Answer = Reply | HttpReply | NoAnswer

STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def http_error(kind: str, message: str = "", *, status: int | None = None, **headers: str) -> HttpReply:
    """An error in the API's own shape: `http_error("rate_limit_error", retry_after="2")`."""
    body = {
        "type": "error",
        "error": {"type": kind, "message": message or kind.replace("_", " ")},
        "request_id": "req_fake",
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpReply(
        status or STATUS_OF[kind], json.dumps(body).encode(), {"content-type": "application/json", **named}
    )


def error_event(kind: str = "overloaded_error", message: str = "Overloaded") -> dict[str, Any]:
    """The event with which the API ends a stream that it cannot finish."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def reply(
    *text: str,
    thinking: str | None = None,
    signature: str | None = None,
    redacted: str | None = None,
    tools: Sequence[ToolUse] = (),
    stop_reason: str | None = None,
    usage: Mapping[str, int] | None = None,
    model: str = "fake",
) -> Reply:
    """A whole, proper reply: each `text` is one delta of one text block; thinking first, tool calls last.

    `stop_reason` follows the content unless given. `signature` replaces the valid one of the thinking block.
    """
    steps: list[Step] = [message_start(model, usage or {})]
    index = itertools.count()
    if thinking is not None:
        steps += thinking_block(next(index), thinking, signature)
    if redacted is not None:
        block = {"type": "redacted_thinking", "data": redacted}
        steps += block_events(next(index), block, [])
    if text:
        deltas = [{"type": "text_delta", "text": part} for part in text]
        steps += block_events(next(index), {"type": "text", "text": ""}, deltas)
    for each in tools:
        steps += tool_block(next(index), each)
    stop = stop_reason or ("tool_use" if tools else "end_turn")
    steps += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": (usage or {}).get("output_tokens", 5)},
        },
        {"type": "message_stop"},
    ]
    return Reply(tuple(steps))


def message_start(model: str = "fake", usage: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The first event of each stream. The fake gives each message a number when it sends it."""
    counts = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
        **(usage or {}),
    }
    message = {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    return {"type": "message_start", "message": message}


def block_events(index: int, block: dict[str, Any], deltas: Sequence[dict[str, Any]]) -> list[Step]:
    """One content block as events."""
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thinking_block(index: int, thinking: str, signature: str | None) -> list[Step]:
    half = len(thinking) // 2
    parts = [part for part in (thinking[:half], thinking[half:]) if part]
    deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": part} for part in parts]
    deltas.append(
        {"type": "signature_delta", "signature": sign(thinking) if signature is None else signature},
    )
    return block_events(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def tool_block(index: int, each: ToolUse) -> list[Step]:
    text = each.raw if each.raw is not None else json.dumps(each.input, ensure_ascii=False)
    size = max(1, -(-len(text) // max(1, each.pieces)))
    parts = ["", *(text[at : at + size] for at in range(0, len(text), size))]
    block = {"type": "tool_use", "id": each.id, "name": each.name, "input": {}}
    return block_events(index, block, [{"type": "input_json_delta", "partial_json": part} for part in parts])


def names_of(step: Step) -> tuple[str, ...]:
    """The words by which a step is found: its event type, and the type of its delta or block."""
    if not isinstance(step, dict):
        return ()
    inner = step.get("delta") or step.get("content_block") or {}
    return (step["type"], inner.get("type", ""))


def encode_event(event: Mapping[str, Any]) -> bytes:
    """An event as the API writes it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
