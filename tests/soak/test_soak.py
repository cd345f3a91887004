"""A minute of soak on every change; `SOAK_MINUTES=60 pytest tests/soak -s` soaks for an hour (tests/full/README.md)."""

from __future__ import annotations

import itertools
import os
import sys
import time

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from soak.machine import Soak

EXAMPLES = 4
STEPS = 12
MINUTES = float(os.environ.get("SOAK_MINUTES", "1"))


def soak(number: int) -> None:
    """A few examples; each number gives others."""
    run_state_machine_as_test(
        seed(number)(Soak),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(max(300, 60 * MINUTES + 600))
def test_whatever_happens_in_whatever_order_the_invariants_hold() -> None:
    end = time.monotonic() + 60 * MINUTES
    for number in itertools.count():
        soak(number)
        if time.monotonic() >= end:
            break
        sys.stdout.write(f"{(number + 1) * EXAMPLES} examples, {(end - time.monotonic()) / 60:.0f} min left\n")
