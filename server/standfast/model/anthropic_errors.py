"""From what a server answered, or the SDK raised, to one ModelError. No I/O; server text is shortened, and scrubbed by the caller.

The SDK and its HTTP client are imported within functions only: whoever raised one of their errors has loaded them already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from standfast.model.base import ModelError
from standfast.model.json_text import whole

MESSAGE_CHARS_MAX = 500
TOO_LONG_WORDS = (
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "context window",
    "context length",
)

EVENT_REASONS: dict[str, tuple[str, bool]] = {
    "overloaded_error": ("Overloaded", True),
    "rate_limit_error": ("RateLimited", True),
    "authentication_error": ("KeyRefused", False),
    "permission_error": ("KeyRefused", False),
    "invalid_request_error": ("RequestRefused", False),
    "billing_error": ("RequestRefused", False),
    "not_found_error": ("RequestRefused", False),
    "request_too_large": ("ContextTooLong", False),
}
"""Error types of the API that can also end a stream; any other one is a stream that broke."""

SENTENCES = {
    "KeyRefused": (
        "The model's server refused the key ({said}). Nothing was carried out. Set another one with `standfast login`."
    ),
    "RequestRefused": "The model's server refused the request ({said}). Nothing was carried out; the history is complete.",
    "ContextTooLong": (
        "The conversation is too long for the model ({said}). Nothing was lost. Compact the session, or go on in a new one."
    ),
    "RateLimited": "The model's server asks to slow down ({said}). Nothing was carried out.",
    "Overloaded": "The model's server is overloaded ({said}). Nothing was carried out; the run can be resumed later.",
    "ModelUnreachable": (
        "The model did not answer ({said}). Nothing was carried out; the run can be resumed. "
        "Check the network and the address in `standfast daemon status`."
    ),
    "StreamBroken": (
        "The model's server ended the reply early ({said}). Nothing of it was carried out; what it had said is in the history."
    ),
    "StreamStalled": (
        "The reply stalled: {said}. Nothing of it was carried out; what it had said is in the history. The run can be resumed."
    ),
}


def model_error(
    reason: str, said: str, *, retry: bool = False, retry_after_ms: int | None = None, **data: Any
) -> ModelError:
    """A ModelError with the sentence of its reason."""
    return ModelError(reason, SENTENCES[reason].format(said=said), retry=retry, retry_after_ms=retry_after_ms, **data)


def failures() -> tuple[type[Exception], ...]:
    """Everything that a request may raise. The HTTP client's own errors come through raw once a stream has begun."""
    import anthropic
    import httpx2

    return (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError)


def from_exception(error: Exception, now_ms: int, stall_s: float) -> ModelError:
    """One of `failures` in our words."""
    import anthropic
    import httpx2

    if isinstance(error, anthropic.APIStatusError):
        return from_status(error.status_code, error.response.headers, error.body, now_ms)
    if isinstance(error, anthropic.APITimeoutError):
        return model_error("ModelUnreachable", "no answer in time", retry=True)
    if isinstance(error, (anthropic.APIConnectionError, httpx2.InvalidURL)):
        return model_error("ModelUnreachable", str(error.__cause__ or error) or "connection failed", retry=True)
    if isinstance(error, httpx2.TimeoutException):
        return model_error("StreamStalled", f"nothing came for {stall_s:g} seconds", retry=True)
    return model_error("StreamBroken", str(error) or type(error).__name__, retry=True)


def from_status(status: int, headers: Mapping[str, str], body: object, now_ms: int) -> ModelError:
    """An HTTP answer that is no success."""
    said = said_by(body)
    reason, retry = _reason_of(status, said)
    retry = retry and headers.get("x-should-retry") != "false"
    text = f"{status}: {said}" if said else str(status)
    if status == 404:
        text += "; is the model's name right, and the base_url?"
    wait = retry_after_ms(headers, now_ms) if retry else None
    return model_error(reason, text, retry=retry, retry_after_ms=wait, status=status)


def from_event(event: Mapping[str, Any]) -> ModelError:
    """An `error` event within a stream."""
    error: Any = event.get("error")
    kind = cast("dict[str, Any]", error).get("type") if isinstance(error, dict) else None
    reason, retry = EVENT_REASONS.get(str(kind), ("StreamBroken", True))
    said = said_by(event) or whole(str(kind))[:MESSAGE_CHARS_MAX]
    if reason == "RequestRefused" and _is_too_long(said):
        reason = "ContextTooLong"
    return model_error(reason, said, retry=retry)


def _reason_of(status: int, said: str) -> tuple[str, bool]:
    """The reason and whether another try may help."""
    if status in (401, 403):
        return "KeyRefused", False
    if status == 413 or (status == 400 and _is_too_long(said)):
        return "ContextTooLong", False
    if status == 429:
        return "RateLimited", True
    if status in (503, 529):
        return "Overloaded", True
    if status >= 500 or status in (408, 409):
        return "ModelUnreachable", True
    return "RequestRefused", False


def _is_too_long(said: str) -> bool:
    lowered = said.lower()
    return any(words in lowered for words in TOO_LONG_WORDS)


def said_by(body: object) -> str:
    """The server's own words: the API's error message, or the beginning of whatever came; one line."""
    text = ""
    if isinstance(body, dict):
        error: Any = cast("dict[str, Any]", body).get("error")
        found = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
        text = found if isinstance(found, str) else ""
    elif isinstance(body, str):
        text = body
    return whole(" ".join(text.split()))[:MESSAGE_CHARS_MAX]


def retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """What the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return int(exact)
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None:
        return int(seconds * 1000)
    try:
        when = parsedate_to_datetime(asked or "")
    except ValueError:
        return None
    return max(0, int(when.timestamp() * 1000) - now_ms)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < 1e9 else None
