"""The scripted model: what it says follows from the messages alone, so it goes on after a crash; it never claims what was not told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_asking import ask

from fake_api import violation
from standfast.model import demo_story
from standfast.model.base import Completed, ModelRequest
from standfast.model.scripted import ScriptedModel, reply_to

TOOLS = ["read_file", "list_files", "search", "run_command", "write_file", "apply_patch"]
DEFINITIONS = [{"name": name, "description": name, "input_schema": {"type": "object"}} for name in TOOLS]
Message = dict[str, Any]
Answer = Callable[[str, dict[str, Any]], Message]


def said(text: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answered(content: str, *, failed: bool = False) -> Message:
    return {
        "type": "tool_result",
        "content": [{"type": "text", "text": content}],
        **({"is_error": True} if failed else {}),
    }


def good(tool: str, args: dict[str, Any]) -> Message:
    """Each call as it ends when nothing goes wrong."""
    match tool:
        case "read_file":
            return answered(demo_story.PROJECT[args["path"]])
        case "run_command":
            return answered("Ran 3 tests in 1.5s\n\nOK\n\nexit code 0")
        case _:
            return answered("done")


def play(first: str, answer: Answer, turns: int = 30) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """A whole run: the calls that were made, and the last text."""
    messages = [said(first)]
    calls: list[tuple[str, dict[str, Any]]] = []
    for _ in range(turns):
        reply = reply_to(messages, TOOLS)
        body = {"model": "m", "max_tokens": 1, "messages": messages, "tools": DEFINITIONS}
        assert violation(body) is None
        text = reply.blocks[0]["text"]
        if not reply.calls:
            return calls, text
        call = reply.calls[0]
        calls.append((call.tool, call.args))
        result = {**answer(call.tool, call.args), "tool_use_id": call.provider_call_id}
        messages += [{"role": "assistant", "content": reply.blocks}, {"role": "user", "content": [result]}]
    raise AssertionError("the script does not end")


PATCHED = ("apply_patch", {"patch": demo_story.PATCH})
TESTED = ("run_command", {"command": demo_story.COMMAND})
READ = [("read_file", {"path": path}) for path in demo_story.READ_FIRST]


def test_the_demo_reads_patches_tests_and_says_what_it_did() -> None:
    calls, last = play(demo_story.REQUEST, good)
    assert calls == [*READ, PATCHED, TESTED]
    assert "all tests pass" in last


def interrupted(words: str) -> Message:
    return answered(f"No result: this call was interrupted after it had started. {words}", failed=True)


@pytest.mark.parametrize(
    ("words", "then"),
    [
        ("applied - verified: it took effect completely.", [TESTED]),
        ("not_applied - verified: it did not take effect.", [PATCHED, TESTED]),
        ("unknown - it was started.", [READ[1], READ[2]]),
        ("partial - verified: it took effect in part.", [READ[1], READ[2]]),
    ],
)
def test_after_a_crash_within_the_patch_it_does_what_the_verdict_asks_for(words: str, then: list[Any]) -> None:
    first = True

    def answer(tool: str, args: dict[str, Any]) -> Message:
        nonlocal first
        if tool == "apply_patch" and first:
            first = False
            return interrupted(words)
        return good(tool, args)

    calls, last = play(demo_story.REQUEST, answer)
    assert calls == [*READ, PATCHED, *then]
    assert ("all tests pass" in last) == (then[-1] == TESTED)


def test_a_verdict_that_is_told_later_counts() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "apply_patch", "input": {"patch": demo_story.PATCH}}
    reads = [
        part
        for number, (tool, args) in enumerate(READ)
        for part in (
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"r{number}", "name": tool, "input": args}]},
            {"role": "user", "content": [{**good(tool, args), "tool_use_id": f"r{number}"}]},
        )
    ]
    lost = {**interrupted("uncertain - its outcome was lost."), "tool_use_id": "c1"}
    note = "<recovery>\n- Call c1 (apply_patch), told of before: the person completed it (now applied).\n</recovery>"
    messages = [
        said(demo_story.REQUEST),
        *reads,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [lost]},
        {"role": "assistant", "content": [{"type": "text", "text": "I stop."}]},
        said(f"{note}\nGo on."),
    ]
    reply = reply_to(messages, TOOLS)
    assert [call.tool for call in reply.calls] == ["run_command"]
    assert "in place" in reply.blocks[0]["text"]


def test_tests_that_were_cut_off_are_run_again_and_refused_calls_end_the_story_honestly() -> None:
    def never(tool: str, args: dict[str, Any]) -> Message:
        return interrupted("unknown - it was started.") if tool == "run_command" else good(tool, args)

    calls, last = play(demo_story.REQUEST, never)
    assert calls == [*READ, PATCHED, TESTED, TESTED, TESTED, TESTED]
    assert "no good result" in last

    def denied(tool: str, args: dict[str, Any]) -> Message:
        return answered("denied by the person", failed=True) if tool != "read_file" else good(tool, args)

    calls, last = play(demo_story.REQUEST, denied)
    assert calls == [*READ, PATCHED, READ[1], READ[2]]
    assert "leave them as they are" in last


@pytest.mark.parametrize("state", ["no file", "denied"])
def test_whatever_is_answered_the_story_ends(state: str) -> None:
    _, last = play(demo_story.REQUEST, lambda _tool, _args: answered(state, failed=True))
    assert "cannot read" in last


def test_the_patch_of_the_demo_mends_its_project(tmp_path: Path) -> None:
    for name, text in demo_story.PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("time.sleep(3)", "time.sleep(0)"))
    run = [sys.executable, *demo_story.COMMAND.split()[1:]]
    before = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert "failures=2" in before.stderr
    for line in (lines := demo_story.PATCH.splitlines()):
        if line.startswith("*** Update File: "):
            path, at = tmp_path / line.removeprefix("*** Update File: "), lines.index(line)
            old, new = (text[1:] for text in lines[at + 2 : at + 4])
            assert path.read_text().count(old) == 1
            path.write_text(path.read_text().replace(old, new))
    after = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert (after.returncode, "OK" in after.stderr) == (0, True)


def test_in_another_project_it_says_what_it_is() -> None:
    calls, last = play("Please write me a compiler", good)
    assert calls == []
    assert "scripted model" in last
    assert "/read PATH" in last


def test_lines_with_a_slash_are_carried_out_one_by_one() -> None:
    message = (
        "Try this:\n/read a.py\n/list *.py\n/list\n/search x y\n/run ls -l | wc\n/write b.txt\none\n\ntwo\n/end\n"
        "/patch\n*** Begin Patch\n*** End Patch\n"
    )
    calls, last = play(message, lambda _tool, _args: answered("x"))
    assert calls == [
        ("read_file", {"path": "a.py"}),
        ("list_files", {"glob": "*.py"}),
        ("list_files", {}),
        ("search", {"pattern": "x y"}),
        ("run_command", {"command": "ls -l | wc"}),
        ("write_file", {"path": "b.txt", "content": "one\n\ntwo\n"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** End Patch\n"}),
    ]
    assert last.count("done") == 7


def test_an_interrupted_line_is_not_carried_out_again() -> None:
    calls, last = play("/run make", lambda _tool, _args: interrupted("unknown - it was started."))
    assert calls == [("run_command", {"command": "make"})]
    assert "1. run_command: doubtful" in last


def test_a_tool_that_is_not_there_is_said() -> None:
    reply = reply_to([said("/run ls")], ["read_file"])
    assert (reply.calls, reply.stop_reason) == ([], "end_turn")
    assert "no tool run_command" in reply.blocks[0]["text"]


async def test_text_comes_in_words_and_the_reply_is_the_same_each_time() -> None:
    model = ScriptedModel(pause_s=0)
    request = ModelRequest("scripted", "", [said("hello")], DEFINITIONS)
    asked = await ask(model, request)
    again = await ask(model, request)
    assert asked.deltas > 20
    assert isinstance(asked.items[-1], Completed)
    assert asked.text == asked.reply.blocks[0]["text"] == again.text
