"""Failpoints die or fail at exactly the hit that was named, and a misspelt one is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from standfast.failpoints import hit, parse


def run(failpoints: str) -> subprocess.CompletedProcess[str]:
    script = (
        "from standfast.failpoints import hit\nfor n in range(4):\n    hit('here'); hit('there'); print(n, flush=True)"
    )
    environment = os.environ | {"FAILPOINTS": failpoints}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)


def test_a_process_dies_at_the_hit_that_was_named() -> None:
    assert [(done.returncode, done.stdout) for done in map(run, ["there=kill@3", "x=kill;here=kill", ""])] == [
        (-9, "0\n1\n"),
        (-9, ""),
        (0, "0\n1\n2\n3\n"),
    ]


def test_an_error_is_raised_at_the_hit_that_was_named() -> None:
    done = run("here=error@2:ENOSPC")
    assert (done.returncode, done.stdout) == (1, "0\n")
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("text", ["here", "here=die", "here=error@1", "here=kill:EIO", "=kill", "here=kill@x"])
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"FAILPOINTS|invalid literal"):
        parse(text)


def test_without_the_environment_a_hit_does_nothing() -> None:
    hit("anything")
