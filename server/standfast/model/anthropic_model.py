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
from standfast.errors import StandfastError
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
        create = client.messages.with_streaming_response.create
        incoming = _Incoming(self._clock, self._settings.stall_s)
        try:
            async with create(**api_body(request, self._settings.thinking), stream=True) as response:
                _check_kind(response.headers.get("content-type"))
                async with aclosing(cast("AsyncGenerator[bytes, None]", response.iter_bytes())) as chunks:
                    async for chunk in chunks:
                        for item in incoming.items(chunk):
                            yield item
                        if incoming.finished:
                            break
                    completed = incoming.completed()
                    await _drain(chunks)
            yield completed
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
        """Look into the file where the key in memory will not do. Raises ModelError (`KeyMissing`)."""
        if self._credentials.key() is None or self._key_doubted:
            try:
                await asyncio.to_thread(self._credentials.reload)
            except StandfastError as error:
                if self._credentials.key() is None:
                    raise ModelError("KeyMissing", error.message) from None
            self._key_doubted = False
        if self._credentials.key() is None:
            raise ModelError(
                "KeyMissing",
                "There is no key for the model. Nothing was sent; your message is kept. Run `standfast login`, then resume "
                "the run. (For a server that needs no key, any word will do.)",
            )

    def _scrubbed(self, error: ModelError) -> ModelError:
        """The error without the key that a server may have quoted."""
        message = self._credentials.scrub(error.message)
        return ModelError(error.reason, message, retry=error.retry, retry_after_ms=error.retry_after_ms, **error.data)


class _Incoming:
    """The bytes of one body as items, and at last the reply."""

    def __init__(self, clock: Clock, stall_s: float) -> None:
        self._clock = clock
        self._pings_only_s = stall_s * PINGS_ONLY_FACTOR
        self._reader = SseReader()
        self._builder = ReplyBuilder()
        self._heard = clock.monotonic()
        self.completed = self._builder.completed

    @property
    def finished(self) -> bool:
        """The last event has come."""
        return self._builder.finished

    def items(self, chunk: bytes) -> Iterator[StreamItem]:
        """What is to be seen with this chunk. Raises ModelError: an error event, broken data, a server that only pings."""
        now, pinged = self._clock.monotonic(), False
        for event in self._events(chunk):
            kind = event_type(event)
            if kind == "error":
                raise from_event(event)
            if kind == "ping":
                pinged = True
                continue
            pinged = False
            item = self._builder.take(event)
            if item is not None:
                yield item
            if self._builder.finished:
                return
        if not pinged:
            self._heard = now
        elif now - self._heard > self._pings_only_s:
            raise model_error("StreamStalled", "the server only sent signs of life", retry=True)

    def _events(self, chunk: bytes) -> Iterator[Any]:
        try:
            for data in self._reader.feed(chunk):
                yield loads(data)
        except EventTooLarge as error:
            raise invalid(f"an event of {error}", retry=False) from None
        except ValueError:
            raise broken("a piece of it was no JSON") from None


def _check_kind(content_type: str | None) -> None:
    """A success that is no stream comes from something between us and the API. Raises ModelError."""
    if content_type and not content_type.startswith("text/event-stream"):
        raise invalid(f"{content_type} instead of a stream of events", retry=False)


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
        import anyio

        anyio.run(anyio.sleep, 0)  # loads the part of anyio that the first request would else load on the loop
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
