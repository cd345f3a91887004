"""Undo gives back what was there, merges where the person went on, says where it cannot, and can be undone itself (issue B.7)."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from edits.scene import Scene, edit, patch, read, write
from standfast.cli.client import Json, RequestFailed

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
MANY = patch(
    "*** Update File: a.txt\n@@\n-two\n+TWO\n"
    "*** Add File: new/deep/b.txt\n+b\n"
    "*** Delete File: c.txt\n"
    "*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-echo 1\n+echo 2\n"
)


def tree(folder: Path) -> dict[str, Any]:
    """Every name with its content and mode; a directory as None."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


async def undo(scene: Scene, run_id: str) -> Json:
    return await scene.editor.request("standfast/run/undo", {"runId": run_id})


async def lenses(scene: Scene, name: str = "a.txt") -> list[Json]:
    params = {"textDocument": {"uri": scene.uri(name)}}
    return [lens["command"] for lens in await scene.editor.request("textDocument/codeLens", params)]


async def last_run(scene: Scene) -> str:
    sessions = await scene.editor.request("standfast/session/list", {"workspaceUri": scene.folder.as_uri()})
    (found,) = [one for one in sessions["sessions"] if one["sessionId"] == scene.session_id]
    return found["lastRun"]["runId"]


async def lay_out(scene: Scene) -> dict[str, Any]:
    scene.path().write_text(OLD)
    scene.path("c.txt").write_text("c\r\nno end")
    scene.path("run.sh").write_text("echo 1\n")
    scene.path("run.sh").chmod(0o750)
    return tree(scene.folder)


async def test_undo_is_the_identity_on_bytes_modes_and_directories_and_its_undo_brings_all_back(scene: Scene) -> None:
    before = await lay_out(scene)
    run_id = await scene.run([MANY], [edit("a.txt", "six", "SIX"), write("new/c.txt", "c\n")])
    after = tree(scene.folder)
    assert {"new", "new/deep", "bin", "bin/run.sh", "new/c.txt"} <= after.keys()
    undone = await undo(scene, run_id)
    assert undone["conflicts"] == []
    assert {Path(file["uri"]).name for file in undone["files"]} >= {"a.txt", "b.txt", "c.txt", "run.sh"}
    assert tree(scene.folder) == before
    undone = await undo(scene, await last_run(scene))
    assert undone["conflicts"] == []
    assert tree(scene.folder) == after
    await undo(scene, await last_run(scene))
    assert tree(scene.folder) == before


async def test_a_directory_that_holds_something_else_stays(scene: Scene) -> None:
    before = await lay_out(scene)
    run_id = await scene.run([MANY])
    scene.path("new/mine.txt").write_text("mine\n")
    await undo(scene, run_id)
    found = tree(scene.folder)
    assert found.pop("new/mine.txt")[0] == b"mine\n"
    assert found.pop("new") is None
    assert found == before


async def test_a_directory_that_was_there_before_stays(scene: Scene) -> None:
    scene.path("empty").mkdir()
    run_id = await scene.run([write("empty/deep/b.txt", "b\n")])
    await undo(scene, run_id)
    assert tree(scene.folder) == {"empty": None}


async def test_what_the_person_did_meanwhile_elsewhere_in_the_file_is_kept(scene: Scene) -> None:
    scene.path().write_text(OLD)
    run_id = await scene.run([edit("a.txt", "two", "TWO")])
    scene.path().write_text(OLD.replace("two", "TWO").replace("six", "six, mine"))
    undone = await undo(scene, run_id)
    assert (len(undone["files"]), undone["conflicts"]) == (1, [])
    assert scene.path().read_text() == OLD.replace("six", "six, mine")


async def test_what_cannot_be_taken_back_is_a_conflict_and_the_rest_is_taken_back(scene: Scene) -> None:
    scene.path().write_text(OLD)
    scene.path("b.txt").write_text(OLD)
    run_id = await scene.run([edit("a.txt", "two", "TWO"), edit("b.txt", "two", "TWO")])
    mine = OLD.replace("two", "two, mine")
    scene.path().write_text(mine)
    undone = await undo(scene, run_id)
    assert [file["uri"] for file in undone["files"]] == [scene.uri("b.txt")]
    (conflict,) = undone["conflicts"]
    assert conflict["uri"] == scene.uri()
    assert (scene.path().read_text(), scene.path("b.txt").read_text()) == (mine, OLD)
    diagnostic = await scene.shown()
    assert (diagnostic["code"], diagnostic["range"]["start"]["line"]) == ("file-changed", 1)
    await scene.act("Keep the file as it is")
    assert scene.path().read_text() == mine
    await scene.clear()


async def test_where_nothing_can_be_taken_back_nothing_is_changed_and_it_is_said(scene: Scene) -> None:
    scene.path().write_text(OLD)
    run_id = await scene.run([edit("a.txt", "two", "TWO")])
    mine = OLD.replace("two", "two, mine")
    scene.path().write_text(mine)
    undone = await undo(scene, run_id)
    assert undone["files"] == []
    assert [one["uri"] for one in undone["conflicts"]] == [scene.uri()]
    assert scene.path().read_text() == mine
    await scene.shown()


async def test_a_file_that_the_person_deleted_is_not_brought_back_behind_their_back(scene: Scene) -> None:
    scene.path().write_text(OLD)
    run_id = await scene.run([edit("a.txt", "two", "TWO")])
    scene.path().unlink()
    undone = await undo(scene, run_id)
    assert [one["uri"] for one in undone["conflicts"]] == [scene.uri()]
    assert not scene.path().exists()


async def test_after_undo_the_model_is_told_and_must_read_again(scene: Scene) -> None:
    scene.path().write_text(OLD)
    run_id = await scene.run([read("a.txt")], [write("a.txt", OLD.replace("two", "TWO"))])
    await undo(scene, run_id)
    await scene.run([write("a.txt", "whole\n")])
    assert "undid changes of yours" in scene.heard() and scene.uri() in scene.heard()
    assert "FILE_CHANGED" in scene.told()
    assert scene.path().read_text() == OLD


@pytest.mark.requirement("R15.1")
async def test_the_lenses_of_the_last_run_review_and_undo_it(scene: Scene) -> None:
    scene.path().write_text(OLD)
    await scene.run([edit("a.txt", "two", "TWO")], [edit("a.txt", "six", "SIX"), write("b.txt", "b\n")])
    review, take_back = await lenses(scene)
    assert (review["command"], take_back["command"]) == ("standfast.diff.show", "standfast.run.undo")
    shown = await scene.editor.request("workspace/executeCommand", review)
    after = OLD.replace("two", "TWO").replace("six", "SIX")
    assert shown["files"] == [{"uri": scene.uri(), "before": OLD, "after": after}]
    assert len(await lenses(scene, "b.txt")) == 2
    assert await lenses(scene, "c.txt") == []
    undone = await scene.editor.request("workspace/executeCommand", take_back)
    assert scene.path().read_text() == OLD and not scene.path("b.txt").exists()
    assert undone["conflicts"] == []
    review, again = await lenses(scene)
    await scene.editor.request("workspace/executeCommand", again)
    assert scene.path().read_text() == after, "the undo of the undo, by the same lens"
    await scene.run([])
    assert await lenses(scene) == [], "the last run changed nothing"


async def test_unsaved_text_is_taken_back_in_the_editor(scene: Scene) -> None:
    scene.path().write_text(OLD)
    window = await scene.open(OLD + "mine\n")
    run_id = await scene.run([edit("a.txt", "two", "TWO")])
    assert window.text == OLD.replace("two", "TWO") + "mine\n"
    await window.type(window.text + "more\n")
    await undo(scene, run_id)
    assert window.text == OLD + "mine\nmore\n"
    assert scene.path().read_text() == OLD


async def test_a_run_that_changed_nothing_cannot_be_undone_and_says_so(scene: Scene) -> None:
    run_id = await scene.run([])
    with pytest.raises(RequestFailed) as refused:
        await undo(scene, run_id)
    assert refused.value.reason == "ActionNotAvailable"


async def test_a_file_made_read_only_meanwhile_is_left_alone(scene: Scene) -> None:
    scene.path().write_text(OLD)
    run_id = await scene.run([edit("a.txt", "two", "TWO")])
    os.chmod(scene.path(), 0o444)
    undone = await undo(scene, run_id)
    assert [one["uri"] for one in undone["conflicts"]] == [scene.uri()]
    assert scene.path().read_text() == OLD.replace("two", "TWO")
