"""Failpoints die or fail at exactly the hit that was named, and a misspelt one is refused."""

from __future__ import annotations

import os
import signal
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


def test_each_hit_acts_where_it_is_said_so() -> None:
    assert run("here=kill@*").stdout == ""
    assert parse("here=error@*:EIO")["here"].at is None


def test_a_process_stops_at_the_hits_that_were_named_and_goes_on_when_it_is_told_to() -> None:
    script = "from standfast.failpoints import hit\nfor n in range(4):\n    hit('here'); print(n, flush=True)"
    environment = os.environ | {"FAILPOINTS": "here=stop@2,4"}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for told in ("0\n", "1\n2\n"):
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert os.read(process.stdout.fileno(), 100).decode() == told
        process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=20)[0] == "3\n"
