"""A short soak on every change; `SOAK_EXAMPLES=2000 pytest tests/soak` soaks for an hour and more (tests/full/README.md)."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from soak.machine import Soak

EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "4"))


@pytest.mark.timeout(max(120, 60 * EXAMPLES))
def test_whatever_happens_in_whatever_order_the_invariants_hold() -> None:
    run_state_machine_as_test(
        Soak,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=12,
            deadline=None,
            derandomize=EXAMPLES <= 4,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
