"""The Messages API through the SDK's raw stream: one request, one attempt (retries are the run loop's, each an event).

The SDK is imported in a thread when a session is first used: it costs a second and 50 MB (performance.md "Process").
We read the server-sent events ourselves, which is the cheapest path and the only one that hides nothing (reliability.md §4).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, cast

from standfast.clock import Clock, SystemClock
from standfast.config import ModelSettings
from standfast.model.anthropic_errors import failures, from_event, from_exception, model_error
from standfast.model.anthropic_stream import ReplyBuilder, broken, event_type, invalid
from standfast.model.base import ModelError, ModelRequest, StreamItem
from standfast.model.credentials import Credentials
from standfast.model.json_text import loads
from standfast.model.request import api_body
from standfast.model.sse import EventTooLarge, SseReader

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, Timeout

DRAIN_S = 0.25
"""How long the end of a body is waited for after the last event, so that the connection can be used again."""
PINGS_ONLY_FACTOR = 5
"""A server that only sends pings is alive; for so many stall times, no longer."""


class AnthropicModel:
    """A `Model` over the Messages API, of Anthropic or any server that speaks it."""

    provider: Literal["anthropic", "scripted"] = "anthropic"

    def __init__(self, settings: ModelSettings, credentials: Credentials, clock: Clock | None = None) -> None:
        self._settings = settings
        self._credentials = credentials
        self._clock = clock or SystemClock()
        self._client: AsyncAnthropic | None = None
        self._loading = asyncio.Lock()
        self._key_doubted = True
        """The key in memory is missing or was refused: look into the file before the next request."""

    async def warm(self) -> None:
        """Import the SDK and build the client, in a thread."""
        await self._loaded()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yields deltas and at last one Completed; raises ModelError. Closing the iterator closes the connection."""
        await self._find_key()
        client = await self._loaded()
        try:
            async with aclosing(self._attempt(client, request)) as items:
                async for item in items:
                    yield item
        except ModelError as error:
            raise self._scrubbed(error) from None
        except failures() as error:
            made = from_exception(error, self._clock.now_ms(), self._settings.stall_s)
            self._key_doubted = made.reason == "KeyRefused"
            raise self._scrubbed(made) from None  # the chain would hold the request, and with it the key

    async def _loaded(self) -> AsyncAnthropic:
        """The one client, with the key of now; connections are shared."""
        async with self._loading:
            if self._client is None:
                self._client = await asyncio.to_thread(load_client, self._settings)
        key = self._credentials.key()
        if key is not None and self._client.api_key != key:
            self._client = self._client.copy(api_key=key)
        return self._client

    async def _find_key(self) -> None:
        if self._credentials.key() is None or self._key_doubted:
            await asyncio.to_thread(self._credentials.reload)
            self._key_doubted = False
        if self._credentials.key() is None:
            raise ModelError(
                "KeyMissing",
                "There is no key for the model. Nothing was sent; your message is kept. Run `standfast login`, then resume "
                "the run. (For a server that needs no key, any word will do.)",
            )

    async def _attempt(self, client: AsyncAnthropic, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        create = client.messages.with_streaming_response.create
        body = api_body(request, self._settings.thinking)
        async with create(**body, stream=True) as response:
            kind = response.headers.get("content-type", "text/event-stream")
            if not kind.startswith("text/event-stream"):
                raise invalid(f"{kind} instead of a stream of events", retry=False)
            chunks = cast("AsyncGenerator[bytes, None]", response.iter_bytes())
            async with aclosing(chunks):
                builder = ReplyBuilder()
                async with aclosing(self._events(chunks)) as events:
                    async for event in events:
                        item = builder.take(event)
                        if item is not None:
                            yield item
                        if builder.finished:
                            break
                completed = builder.completed()
                await _drain(chunks)
            yield completed

    async def _events(self, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[Any, None]:
        """The decoded events of a body. Raises ModelError for an error event, broken data, and a server that only pings."""
        reader = SseReader()
        heard = self._clock.monotonic()
        async for chunk in chunks:
            for event in _decoded(reader, chunk):
                kind = event_type(event)
                if kind == "error":
                    raise from_event(event)
                if kind != "ping":
                    heard = self._clock.monotonic()
                yield event
            if self._clock.monotonic() - heard > self._settings.stall_s * PINGS_ONLY_FACTOR:
                raise model_error("StreamStalled", "the server only sent signs of life", retry=True)

    def _scrubbed(self, error: ModelError) -> ModelError:
        """The error without the key that a server may have quoted."""
        message = self._credentials.scrub(error.message)
        return ModelError(error.reason, message, retry=error.retry, retry_after_ms=error.retry_after_ms, **error.data)


def _decoded(reader: SseReader, chunk: bytes) -> Iterator[Any]:
    """The events that are whole with this chunk. Raises ModelError."""
    try:
        for data in reader.feed(chunk):
            yield loads(data)
    except EventTooLarge as error:
        raise invalid(f"an event of {error}", retry=False) from None
    except ValueError:
        raise broken("a piece of it was no JSON") from None


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read to the end of the body, for a moment: the reply is whole, whatever happens here."""
    with contextlib.suppress(TimeoutError, *failures()):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def load_client(settings: ModelSettings) -> AsyncAnthropic:
    """Import the SDK, build its client and touch what it loads late. Slow (a second): in a thread, once.

    The collector stands still meanwhile and never looks at the SDK's 50 MB again (performance.md: 133 ms a full pass).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        import anthropic

        http = anthropic.DefaultAsyncHttpxClient(
            trust_env=False, follow_redirects=False, proxy=settings.proxy, timeout=_timeout(settings)
        )
        client = anthropic.AsyncAnthropic(
            api_key="not-set-yet",
            base_url=settings.base_url,
            max_retries=0,
            http_client=http,
            open_telemetry=False,
        )
        _ = client.messages.with_streaming_response.create
        return client
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _timeout(settings: ModelSettings) -> Timeout:
    import anthropic

    return anthropic.Timeout(settings.stall_s, connect=settings.connect_s)
