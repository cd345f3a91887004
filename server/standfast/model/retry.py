"""When to ask the model again, and after how long. Pure: the run loop waits, records and counts (design.md "Small print")."""

from __future__ import annotations

from collections.abc import Callable

from standfast.model.base import ModelError

TRIES_MAX = 8
WITHIN_MS = 300_000
RETRY_AFTER_MAX_MS = 60_000
BACKOFF_MAX_MS = 30_000
INVALID_TRIES_MAX = 3
"""A reply that came whole but cannot be used costs tokens each time, so it is asked for less often."""


def delay_ms(
    attempt: int, error: ModelError, random: Callable[[], float], *, elapsed_ms: int = 0, base_ms: int = 500
) -> int | None:
    """Milliseconds to wait before the next try, or None: give up.

    `attempt`: the number of the try that just failed, from 1. `random`: a number in [0, 1), for the jitter.
    `elapsed_ms`: since the first try began. What the server asks for is honoured up to a minute.
    """
    tries = INVALID_TRIES_MAX if error.reason == "InvalidReply" else TRIES_MAX
    if not error.retry or attempt >= tries:
        return None
    backoff = min(BACKOFF_MAX_MS, base_ms * 2 ** (attempt - 1)) * (0.5 + random() / 2)
    wait = max(int(backoff), min(error.retry_after_ms or 0, RETRY_AFTER_MAX_MS))
    return wait if elapsed_ms + wait <= WITHIN_MS else None
