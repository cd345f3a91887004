"""Which actions are offered for what: pure, from rows (design.md "Editor surface"; only those that fit)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lsprotocol import types

from standfast.editor.attention_view import diagnostic, visible
from standfast.editor.code_actions import Matter, actions, touched, wanted
from standfast.editor.fitting import call_actions, conflict_actions
from standfast.projections.attention import AttentionItem
from standfast.projections.rows import CallRow, ConflictRow, RunRow
from standfast.session.views import ConflictView

FILE = {"kind": "file", "uri": "file:///w/a.txt"}


def call(verdict: str | None, *, tool: str = "write_file", intents: Any = (FILE,), **more: Any) -> CallRow:
    return CallRow(
        "call_1", "ses_1", "run_1", "toolu_1", tool, {}, "started", 5, intents=list(intents), verdict=verdict, **more
    )


def conflict(*, merged: str | None = None, hunks: Any = (), state: str = "open") -> ConflictView:
    row = ConflictRow("conf_1", "call_1", "ses_1", "run_1", "file:///w/a.txt", "a.txt", "ambiguous", state, {})
    return ConflictView(row, "base", "now", "new", merged, list(hunks))


def item(line: int = 1, code: Any = "partial-write", **ids: str) -> AttentionItem:
    return AttentionItem(code, "ses_1", "file:///w/a.txt", line, "said", **ids)


@pytest.mark.parametrize(
    ("verdict", "offered"),
    [
        ("applied", ["undo", "keep", "dismiss"]),
        ("not_applied", ["complete", "dismiss"]),
        ("partial", ["complete", "undo", "keep"]),
        ("diverged", ["keep", "verify"]),
        ("unknown", ["verify", "keep", "dismiss"]),
        (None, ["verify", "keep", "dismiss"]),
    ],
)
def test_a_call_is_offered_what_fits_its_verdict(verdict: str | None, offered: list[str]) -> None:
    assert list(call_actions(call(verdict))) == offered


def test_a_command_is_never_completed_or_undone() -> None:
    command = ({"kind": "command", "command": "make"},)
    for verdict in ("applied", "not_applied", "partial", "diverged", "running", "finished", "unknown"):
        assert not {"complete", "undo"} & set(call_actions(call(verdict, tool="run_command", intents=command)))
    assert list(call_actions(call("running", tool="run_command", intents=command))) == ["stop", "verify", "dismiss"]


def test_the_edit_of_a_buffer_is_never_repeated() -> None:
    mixed = (FILE, {"kind": "buffer", "uri": "file:///w/b.txt"})
    assert not {"complete", "undo"} & set(call_actions(call("partial", intents=mixed)))


def test_a_conflict_is_offered_its_merge_and_one_action_for_each_place() -> None:
    hunks = [{"index": 0, "state": "conflict", "candidateLines": [9, 2, 9]}, {"index": 1, "state": "pending"}]
    found = conflict_actions(conflict(merged="m", hunks=hunks))
    assert found == [
        ("merge", None),
        ("applyAt", 2),
        ("applyAt", 9),
        ("retry", None),
        ("keep", None),
        ("dismiss", None),
    ]
    assert ("applyAt", 2) not in conflict_actions(
        conflict(hunks=[*hunks, {"state": "conflict", "candidateLines": [5]}])
    )
    assert conflict_actions(conflict(state="resolved")) == []


def test_what_is_settled_has_no_actions() -> None:
    assert actions([Matter(item(), call=call("partial", dismissed=True))]) == []
    assert actions([Matter(item(), conflict=conflict(state="resolved"))]) == []
    assert actions([Matter(item())]) == []


def test_an_interrupted_run_can_be_resumed_from_its_files() -> None:
    run = RunRow("run_1", "ses_1", "interrupted")
    found = actions([Matter(item(code="interrupted-run", run_id="run_1"), call=call("partial"), run=run)])
    assert [action.title for action in found] == [
        "Complete the interrupted change of the file",
        "Undo the interrupted change of the file",
        "Keep the file as it is now",
        "Show difference",
        "Resume the run",
    ]
    assert not any(action.is_preferred for action in found), "auto fix must not choose for the person"
    last = found[-1].command
    assert last is not None and (last.command, last.arguments) == ("standfast.run.resume", [{"runId": "run_1"}])
    finished = actions([Matter(item(run_id="run_1"), run=replace(run, status="succeeded"))])
    assert finished == []


def test_two_items_of_one_call_offer_each_action_once() -> None:
    matters = [Matter(item(code=code), call=call("partial")) for code in ("partial-write", "interrupted-run")]
    titles = [action.title for action in actions(matters)]
    assert len(titles) == len(set(titles))


@pytest.mark.scenario("ATK-46")
def test_an_action_carries_ids_only() -> None:
    poisoned = call("partial", evidence="[x](command:evil)", summary="rm -rf", targets=[{"uri": "file:///w/a.txt"}])
    for action in actions([Matter(item(), call=poisoned)]):
        assert action.command is not None and action.command.arguments is not None
        assert set(action.command.arguments[0]) <= {"callId", "action", "conflictId", "runId", "line"}
        assert "evil" not in action.title and "rm" not in action.title


@pytest.mark.scenario("d07")
def test_items_are_found_by_their_lines() -> None:
    items = [item(1), item(4), item(9)]

    def lines(start: tuple[int, int], end: tuple[int, int]) -> list[int]:
        return [i.line for i in touched(items, types.Range(types.Position(*start), types.Position(*end)))]

    assert lines((3, 5), (3, 5)) == [4] and lines((3, 10), (3, 10)) == [4]
    assert lines((0, 0), (100, 0)) == [1, 4, 9]
    assert lines((2, 0), (3, 0)) == [] and lines((3, 0), (4, 0)) == [4]


def test_the_filter_is_honoured() -> None:
    assert wanted(None) and wanted([]) and wanted(["quickfix"]) and wanted([""]) and wanted(["refactor", "quickfix"])
    assert not wanted(["refactor"]) and not wanted(["quickfix.standfast"]) and not wanted(["quick"])


@pytest.mark.scenario("ATK-43")
@pytest.mark.scenario("ATK-45")
def test_what_could_steer_a_terminal_or_hide_is_made_visible() -> None:
    shown = visible("a\x1b]52;c;eA==\x07 \u202eevil\u202c \U000e0041 \u200b ok\n\té😋")
    assert shown == "a\\u{1b}]52;c;eA==\\u{7} \\u{202e}evil\\u{202c} \\u{e0041} \\u{200b} ok\n\té😋"
    poisoned = AttentionItem("uncertain-call", "ses_1", "file:///w/a.txt", 1, "\x1b[2Jsaid")
    assert diagnostic(poisoned).message == "\\u{1b}[2Jsaid"
