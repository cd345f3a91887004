"""When to ask again (design.md "Small print": 8 tries within 5 minutes, retry-after honoured up to 60 s)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.model.base import ModelError
from standfast.model.retry import TRIES_MAX, delay_ms


def overloaded(retry_after_ms: int | None = None) -> ModelError:
    return ModelError("Overloaded", "busy", retry=True, retry_after_ms=retry_after_ms)


def test_pauses_double_up_to_half_a_minute_and_end_after_eight_tries() -> None:
    waits = [delay_ms(attempt, overloaded(), lambda: 1.0) for attempt in range(1, 9)]
    assert waits == [500, 1000, 2000, 4000, 8000, 16000, 30000, None]


def test_jitter_takes_at_most_half() -> None:
    assert delay_ms(3, overloaded(), lambda: 0.0) == 1000


def test_what_the_server_asks_for_is_honoured_up_to_a_minute() -> None:
    assert delay_ms(1, overloaded(7_000), lambda: 0.5) == 7_000
    assert delay_ms(1, overloaded(3_600_000), lambda: 0.5) == 60_000


def test_a_try_that_would_begin_after_five_minutes_is_not_made() -> None:
    assert delay_ms(2, overloaded(5_000), lambda: 0.0, elapsed_ms=295_000) == 5_000
    assert delay_ms(2, overloaded(5_000), lambda: 0.0, elapsed_ms=295_001) is None


def test_an_error_that_another_try_cannot_mend_is_final() -> None:
    assert delay_ms(1, ModelError("KeyRefused", "no"), lambda: 0.5) is None


def test_a_reply_that_came_whole_but_is_wrong_is_asked_for_three_times() -> None:
    wrong = ModelError("InvalidReply", "what", retry=True)
    assert [delay_ms(attempt, wrong, lambda: 1.0) is None for attempt in (1, 2, 3)] == [False, False, True]


@pytest.mark.requirement("R4.4")
@given(
    st.integers(1, 20), st.integers(0, 400_000), st.none() | st.integers(0, 10**9), st.floats(0, 1, exclude_max=True)
)
def test_whatever_happens_it_ends(attempt: int, elapsed_ms: int, retry_after_ms: int | None, jitter: float) -> None:
    wait = delay_ms(attempt, overloaded(retry_after_ms), lambda: jitter, elapsed_ms=elapsed_ms)
    assert wait is None or (attempt < TRIES_MAX and 0 < wait <= 60_000 and elapsed_ms + wait <= 300_000)
