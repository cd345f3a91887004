"""The public patch cases through the command itself: a new case is a file in tests/patch_cases (POLICY.md there)."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from files_desk import Desk, OneEditor, lay_out, snapshot

from standfast.cli.apply_patch import main

CASES = sorted((Path(__file__).parents[1] / "patch_cases").glob("*.json"))
EXIT = {"applied": 0, "conflict": 1, "error": 2}


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


def after(case: dict[str, Any], base: Path, files: Any) -> dict[str, Any]:
    """What a workspace of these files looks like, links and outside files included."""
    lay_out(base / "wanted" / "w", case["files"] if files == "unchanged" else files)
    return snapshot(base / "wanted")


def matches(case: dict[str, Any], wanted: dict[str, Any], result: dict[str, Any], base: Path) -> str | None:
    """None where outcome, place and bytes are as wanted; else what differs."""
    if result["outcome"] != wanted["expect"]:
        return f"outcome {result}"
    conflict = wanted.get("conflict")
    if conflict is not None:
        said = result.get("conflict") or {"hunkIndex": None, **result["error"]}
        place = {"path": said.get("path"), "hunk_index": said["hunkIndex"], "reason": said["reason"]}
        if place != conflict:
            return f"{place} instead of {conflict}"
    elif "reason" in wanted and wanted["reason"] != (result.get("conflict") or result["error"])["reason"]:
        return f"reason {result}"
    expected = after(case, base, wanted["result_files"])
    found = snapshot(base / "found")
    return None if found == expected else f"{found} instead of {expected}"


@pytest.mark.requirement("R11.3")
@pytest.mark.scenario("c05")
@pytest.mark.parametrize("path", [case for case in CASES if "buffers" not in load(case)], ids=lambda path: path.stem)
def test_a_public_case_ends_exactly_as_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = load(path)
    lay_out(tmp_path / "found" / "w", case["files"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(case["patch"].encode())))
    code = main(["--json", "--workspace", str(tmp_path / "found" / "w")])
    result = json.loads(capsys.readouterr().out)

    assert code == EXIT[result["outcome"]]
    problem = matches(case, case, result, tmp_path)
    assert problem is None, problem
    if "candidate_lines" in case:
        assert result["conflict"]["candidateLines"] == case["candidate_lines"]
    if "diverging_line" in case:
        assert result["conflict"]["line"] == case["diverging_line"]


RESHAPING = {"atomic", "delete", "mode", "move", "symlink"}
"""Topics in which more than the text of files changes."""


def reshapes(case: dict[str, Any]) -> bool:
    return case["expect"] == "applied" and case["topic"] in RESHAPING


@pytest.mark.parametrize("path", [case for case in CASES if reshapes(load(case))], ids=lambda path: path.stem)
async def test_what_a_case_applied_can_be_taken_back_and_made_again(path: Path, tmp_path: Path) -> None:
    case = load(path)
    lay_out(tmp_path / "w", case["files"])
    desk = Desk(tmp_path / "w")
    before = snapshot(tmp_path)
    done = await desk.call("apply_patch", patch=case["patch"])
    after = snapshot(tmp_path)
    for wanted in (before, after, before) if done.files else ():
        done = await desk.undo(done)
        assert done.status == "ok", done.content
        assert files_of(snapshot(tmp_path)) == files_of(wanted)


def files_of(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if value != "directory"}


@pytest.mark.parametrize("path", CASES[::24], ids=lambda path: path.stem)
def test_the_command_as_a_process_says_the_same(path: Path, tmp_path: Path) -> None:
    case = load(path)
    lay_out(tmp_path / "found" / "w", case["files"])
    command = [sys.executable, "-m", "standfast.cli.apply_patch", "--json"]
    done = subprocess.run(
        command,
        input=case["patch"].encode(),
        cwd=tmp_path / "found" / "w",
        capture_output=True,
        check=False,
        timeout=30,
    )
    result = json.loads(done.stdout)
    assert done.returncode == EXIT[result["outcome"]], done.stderr
    assert matches(case, case, result, tmp_path) is None


@pytest.mark.parametrize("path", [case for case in CASES if "buffers" in load(case)], ids=lambda path: path.stem)
@pytest.mark.parametrize("answer", ["applied", "refused"])
async def test_a_case_with_unsaved_text_never_writes_behind_the_editor(path: Path, answer: str, tmp_path: Path) -> None:
    case = load(path)
    folder = tmp_path / "w"
    lay_out(folder, case["files"])
    texts = {name: buffer["text"] for name, buffer in case["buffers"].items()}
    editor = OneEditor(folder, texts, answer=answer)
    acceptable = [one for one in case.get("also_acceptable", ()) if "result_buffers" in one]
    wanted = acceptable[0] if answer == "applied" and acceptable else case
    files = case["files"] if wanted["result_files"] == "unchanged" else wanted["result_files"]
    lay_out(tmp_path / "wanted", files)
    outcome = await Desk(folder, editor).call("apply_patch", patch=case["patch"])

    assert snapshot(folder) == snapshot(tmp_path / "wanted")
    if wanted is not case:
        assert outcome.status == "ok"
        assert editor.texts == wanted["result_buffers"]
    else:
        told = case["conflict"]
        assert [(one.reason, one.path) for one in outcome.conflicts] == [(told["reason"], told["path"])]
        assert editor.texts == texts


def test_the_runner_sees_a_wrong_result(tmp_path: Path) -> None:
    case = load(next(path for path in CASES if path.stem == "001_crlf_keep_on_update"))
    lay_out(tmp_path / "found" / "w", case["files"])
    result = {"outcome": "applied", "files": []}
    assert matches(case, case, result, tmp_path) is not None
