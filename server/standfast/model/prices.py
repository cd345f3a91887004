"""What tokens cost at the list price: an estimate for people, never an input to a decision. Pure.

US dollars per million tokens: input, output, read from the cache; written to it (for five minutes): 1.25 times the input.
Source: https://platform.claude.com/docs/en/about-claude/pricing, as of 2026-11. A model that is not here gets no estimate; nor
does one whose price depends on each prompt's length (claude-haiku-5-5), since only sums are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PRICES: Mapping[str, tuple[float, float, float]] = {
    "claude-fable-5-1": (10, 50, 0.25),
    "claude-fable-5": (10, 50, 1),
    "claude-opus-5-5": (4, 20, 0.2),
    "claude-opus-5": (5, 25, 0.5),
    "claude-opus-4-8": (5, 25, 0.5),
    "claude-opus-4-7": (5, 25, 0.5),
    "claude-opus-4-6": (5, 25, 0.5),
    "claude-opus-4-5": (5, 25, 0.5),
    "claude-opus-4-1": (15, 75, 1.5),
    "claude-sonnet-5-5": (2, 10, 0.1),
    "claude-sonnet-5": (2, 10, 0.2),
    "claude-sonnet-4-6": (3, 15, 0.3),
    "claude-sonnet-4-5": (3, 15, 0.3),
    "claude-haiku-4-5": (1, 5, 0.1),
}
_WRITTEN = 1.25
_DATE = re.compile(r"-\d{8}$")


def estimate_usd(model: str, usage: Mapping[str, int]) -> float | None:
    """US dollars for tokens by their names on the wire (`inputTokens`, …); None for a model whose price is not known."""
    price = _PRICES.get(_DATE.sub("", model))
    if price is None:
        return None
    read, written, cached = price
    millionths = (
        usage["inputTokens"] * read
        + usage["outputTokens"] * written
        + usage["cacheReadInputTokens"] * cached
        + usage["cacheCreationInputTokens"] * read * _WRITTEN
    )
    return round(millionths / 1_000_000, 6)
