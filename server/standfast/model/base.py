"""What a model is to the rest: a request in, a stream of text and one whole reply out, or one typed error (reliability.md §4).

A `Completed` is only yielded for a stream that ended properly; whether its tool calls may be carried out is said by
`calls`, which are there only if `stop_reason` is `tool_use`, each block was closed and its raw JSON parsed strictly.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from standfast.errors import StandfastError
from standfast.events.types import Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What one call is sent: the Messages API's own shapes. Stable parts first, so that the prompt cache works."""

    model: str
    system: str
    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]]
    """{name, description, input_schema}"""
    max_tokens: int = 16_000


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call that may be carried out, as far as the wire goes (arguments are validated by the tool's own Args)."""

    provider_call_id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Completed:
    """One whole reply."""

    blocks: list[dict[str, Any]]
    """Content blocks to store and to send back untouched; tool_use blocks that may not be carried out are left out."""
    stop_reason: str
    usage: Usage
    calls: list[RequestedCall] = field(default_factory=list[RequestedCall])
    cut: list[RequestedCall] = field(default_factory=list[RequestedCall])
    """Calls of a reply that ended at its length limit: never carried out, answered as incomplete (c12). Their blocks and
    arguments are empty: half an argument is worse than none."""


StreamItem = TextDelta | ThinkingDelta | Completed


class ModelError(StandfastError):
    """The reply did not come or did not come whole. Nothing of it may be carried out.

    reason: KeyMissing, KeyRefused, ModelUnreachable, Overloaded, RateLimited, StreamBroken, StreamStalled, RequestRefused
    (a 400: data.status), ContextTooLong, OutputTooLong (max_tokens inside a tool call), InvalidReply, Refusal, UnknownStop.
    `retry`: another attempt may help. `retry_after_ms`: what the server asked for.
    """

    def __init__(
        self, reason: str, message: str, *, retry: bool = False, retry_after_ms: int | None = None, **data: Any
    ) -> None:
        super().__init__(reason, message, **data)
        self.retry = retry
        self.retry_after_ms = retry_after_ms


class Model(Protocol):
    """A provider. One attempt a call: retries are the run loop's, so that each is an event (design.md)."""

    provider: Literal["anthropic", "scripted"]

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Raises ModelError. Closing the iterator ends the request."""
        ...

    async def warm(self) -> None:
        """Import and prepare what is slow, off the loop; called when a session is first created or attached."""
        ...

    async def close(self) -> None: ...
