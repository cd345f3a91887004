"""What the command line prints cannot steer a terminal, and says things in a line."""

from __future__ import annotations

import pytest

from standfast.cli.output import plain
from standfast.cli.wording import call_words, describe


@pytest.mark.scenario("ATK-52")
def test_control_and_bidirectional_characters_are_made_visible() -> None:
    hostile = "ok\x1b[2J\x07 \u202ecod.exe\u2066 \x9b31m\r\ntab\there"
    assert plain(hostile) == "ok\\u001b[2J\\u0007 \\u202ecod.exe\\u2066 \\u009b31m\\u000d\ntab\there"


def test_ordinary_text_of_any_language_is_left_alone() -> None:
    text = "naïve 日本語 עברית 👩‍💻 é\n"
    assert plain(text.replace("\u200d", "")) == text.replace("\u200d", "")


def test_a_call_is_named_by_what_it_acts_on() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: b.py\n*** End Patch"
    assert call_words("apply_patch", {"patch": patch}) == "apply_patch a.py, b.py"
    assert call_words("run_command", {"command": "make test"}) == "run_command make test"
    assert call_words("update_plan", {"goal": "x", "steps": []}) == "update_plan"


def test_an_event_is_one_line_whatever_it_holds() -> None:
    event = {"type": "tool_result", "status": "error", "content": "line one\nline two\x1b[31m" + "x" * 500}
    line = describe(event).plain
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 130
    assert describe({"type": "event_of_a_later_release", "what": 1}).plain.startswith("event of a later release")
