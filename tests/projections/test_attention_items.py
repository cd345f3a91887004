"""What a person must look at, from rows: one item a target, each saying what it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from standfast.projections.attention import AttentionItem, attention
from standfast.projections.recovery_view import recovery
from standfast.projections.rows import CallRow, ConflictRow, RunRow, SessionRow
from standfast.session.trust import Lapse
from standfast.store.base import Damage

SESSION = SessionRow("s", "u", "file:///w", "t", "ask", "m", "active", 1, 2)
INTERRUPTED = RunRow("r", "s", "interrupted")
CALL = CallRow("c", "s", "r", "p", "apply_patch", {}, "started", 5, uncertain=True)
TRANSCRIPT = "standfast:/session/s"
A, B = "file:///w/a.py", "file:///w/b.py"


def brief(items: list[AttentionItem]) -> list[tuple[str, str, int]]:
    return [(item.code, item.uri, item.line) for item in items]


def items(*calls: CallRow, run: RunRow | None = None) -> list[AttentionItem]:
    return attention(SESSION, run, calls, [], [])


def test_nothing_open_is_nothing_to_look_at() -> None:
    assert attention(SESSION, RunRow("r", "s", "succeeded"), [], [], []) == []


def test_a_partial_write_stands_on_every_target_and_says_for_each_what_it_is() -> None:
    targets = [{"uri": A, "verdict": "applied"}, {"uri": B, "verdict": "not_applied"}]
    found = items(replace(CALL, verdict="partial", targets=targets, evidence="1 of 2."), run=INTERRUPTED)
    assert brief(found) == [
        ("partial-write", A, 1),
        ("partial-write", B, 1),
        ("interrupted-run", A, 1),
        ("interrupted-run", B, 1),
    ]
    assert found[0].message.startswith("The patch was interrupted. This file: applied: ")
    assert found[2].message.startswith("A run was interrupted during the patch. This file: applied: ")
    assert [" applied:" in item.message for item in found] == [True, False, True, False]
    assert [" not_applied:" in item.message for item in found] == [False, True, False, True]
    assert [item.severity for item in found] == ["warning", "warning", "information", "information"]
    assert [(item.call_id, item.run_id) for item in found] == [("c", None), ("c", None), (None, "r"), (None, "r")]


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("unknown", "uncertain-call"),
        ("running", "uncertain-call"),
        ("diverged", "diverged-file"),
        (None, "uncertain-call"),
    ],
)
def test_a_command_without_a_file_stands_on_the_transcript(verdict: str | None, code: str) -> None:
    targets = [{"command": "make", "verdict": verdict or "unknown"}]
    (found,) = items(replace(CALL, tool="run_command", verdict=verdict, targets=targets))
    assert (found.code, found.uri) == (code, TRANSCRIPT)
    assert found.message.startswith(f"The command was interrupted. “make”: {verdict or 'unknown'}: ")


@pytest.mark.parametrize("verdict", ["applied", "not_applied", "finished"])
def test_what_is_settled_is_told_but_asks_for_nothing(verdict: str) -> None:
    found = items(replace(CALL, verdict=verdict, targets=[{"uri": A, "verdict": verdict}]), run=INTERRUPTED)
    assert brief(found) == [("interrupted-run", A, 1)]
    assert verdict in found[0].message


def test_after_complete_each_target_is_what_the_call_became() -> None:
    targets = [{"uri": A, "verdict": "applied"}, {"uri": B, "verdict": "not_applied"}]
    call = replace(CALL, verdict="applied", targets=targets, resolution="complete")
    found = items(call, run=INTERRUPTED)
    assert brief(found) == [("interrupted-run", A, 1), ("interrupted-run", B, 1)]
    assert not [item for item in found if "not_applied" in item.message]
    assert recovery(INTERRUPTED, [call]) == {
        "interruptedRun": {"runId": "r", "status": "interrupted"},
        "calls": [
            {
                "callId": "c",
                "tool": "apply_patch",
                "targets": [{"uri": A, "verdict": "applied"}, {"uri": B, "verdict": "applied"}],
                "verdict": "applied",
                "evidence": "",
                "resolution": "complete",
            }
        ],
    }


@pytest.mark.parametrize(
    ("tool", "deed"),
    [
        ("edit_file", "The edit"),
        ("write_file", "The writing of the file"),
        ("undo", "The undoing"),
        ("fetch", "The call of fetch"),
    ],
)
def test_a_call_is_named_as_a_person_would(tool: str, deed: str) -> None:
    (found,) = items(replace(CALL, tool=tool, verdict="unknown", targets=[{"uri": A, "verdict": "unknown"}]))
    assert found.message.startswith(f"{deed} was interrupted. ")


def test_an_interrupted_run_without_calls_stands_on_the_transcript() -> None:
    assert brief(items(run=INTERRUPTED)) == [("interrupted-run", TRANSCRIPT, 1)]
    assert recovery(RunRow("r", "s", "failed"), []) is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("FILE_CHANGED", "file-changed"),
        ("FILE_NOT_READ", "file-changed"),
        ("ambiguous", "patch-conflict"),
        ("dirty_buffer", "patch-conflict"),
    ],
)
def test_a_conflict_stands_on_its_line(reason: str, code: str) -> None:
    hunks = [{"index": 0, "state": "pending", "line": 2}, {"index": 1, "state": "conflict", "candidateLines": [7, 9]}]
    row = ConflictRow("k", "c", "s", "r", A, "a.py", reason, "open", {"hunks": hunks, "message": "Two places fit."})
    found = attention(SESSION, None, [], [row, replace(row, conflict_id="k2", state="resolved")], [])
    assert found == [AttentionItem(found[0].code, "s", A, 7, "Two places fit.", conflict_id="k", candidates=(7, 9))]
    assert found[0].code == code


def test_a_lapsed_trust_stands_on_each_file_that_changed_and_another_folder_on_the_transcript() -> None:
    lapse = Lapse("file:///w", ((".git/hooks/pre-push", A), ("the folder itself", "")), "v")
    found = attention(SESSION, None, [], [], [], None, lapse)
    assert brief(found) == [("trust-lapsed", A, 1), ("trust-lapsed", TRANSCRIPT, 1)]
    assert [item.message.split(" since")[0] for item in found] == [
        ".git/hooks/pre-push changed, or is new,",
        "Another folder is in this place",
    ]
    assert {item.trust for item in found} == {("file:///w", "v")}
    assert {item.severity for item in found} == {"warning"}


def test_an_open_permission_and_a_damaged_history_are_shown_where_they_belong() -> None:
    asked = replace(CALL, state="asked", summary="Write a.py", files=[{"uri": A, "kind": "update"}])
    command = replace(asked, call_id="c2", files=[], summary="Run make")
    found = attention(SESSION, None, [], [], [asked, command], Damage(4, "Event 4 is missing."))
    assert brief(found) == [
        ("permission-needed", A, 1),
        ("permission-needed", TRANSCRIPT, 1),
        ("history-damaged", TRANSCRIPT, 1),
    ]
    assert "event 4" in found[-1].message
    assert found[-1].severity == "error"
