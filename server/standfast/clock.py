"""The clock and the source of ids, passed in so that pure code stays pure and tests can set them."""

from __future__ import annotations

import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for what people read, monotonic time for waits and budgets (a clock jump must not matter, F18)."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class Ids(Protocol):
    """Where new ids come from. An id is opaque: a kind, an underscore and 20 hex digits."""

    def new(self, kind: str) -> str:
        """A new id, e.g. `new("call")` -> `call_5f0c…`. Kinds: ses, run, msg, call, op, conf."""
        ...


class RandomIds:
    """Ids from the system's random source."""

    def new(self, kind: str) -> str:
        return f"{kind}_{secrets.token_hex(10)}"
