"""The ways out of a conflict, as a person takes them: diagnostic → code action → resolve → command (issue B, 4 and 5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from edits.scene import Scene, Stage, edit, patch, read, write
from fake_api import ToolUse, reply
from standfast.cli.client import RequestFailed

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
MINE = OLD.replace("six", "six, mine")
TWICE = "top\nif a:\n    x\nmiddle\nif a:\n    x\nend\n"
TWO_PLACES = patch("*** Update File: a.txt\n@@\n if a:\n-    x\n+    y\n")
MERGE, RETRY, KEEP = (
    "Apply merged: keep both changes",
    "Let the agent read the file again and retry",
    "Keep the file as it is",
)
AMBIGUOUS: dict[str, ToolUse] = {"apply_patch": TWO_PLACES, "edit_file": edit("a.txt", "if a:\n    x", "if a:\n    y")}


CODES = {"apply_patch": "patch-conflict", "edit_file": "file-changed"}


@pytest.fixture
async def scene(stage: Stage, folder: Path) -> AsyncGenerator[Scene]:
    """Through `standfast lsp`, all the way."""
    async with stage.scene(folder, pump=True) as found:
        yield found


async def changed_elsewhere(scene: Scene) -> None:
    """The model wrote the whole file, the person had saved another line of it."""
    path = scene.path()
    path.write_text(OLD)
    await scene.run([read("a.txt")], [lambda: path.write_text(MINE), write("a.txt", OLD.replace("two", "TWO"))])
    assert path.read_text() == MINE
    await scene.shown()


async def ambiguous(scene: Scene, name: str = "apply_patch") -> None:
    scene.path().write_text(TWICE)
    await scene.run([AMBIGUOUS[name]])
    assert scene.path().read_text() == TWICE
    await scene.shown()


@pytest.mark.requirement("R11.4")
async def test_a_clean_merge_is_offered_and_applied_only_when_it_is_chosen(scene: Scene) -> None:
    await changed_elsewhere(scene)
    conflict = await scene.conflict()
    merged = MINE.replace("two", "TWO")
    assert (conflict["base"], conflict["current"], conflict["proposed"], conflict["merged"]) == (
        OLD,
        MINE,
        OLD.replace("two", "TWO"),
        merged,
    )
    assert "offered to the person" in scene.told()
    assert scene.path().read_text() == MINE
    done = await scene.act(MERGE)
    assert (done["conflict"]["state"], done["conflict"]["action"]) == ("resolved", "merge")
    assert scene.path().read_text() == merged
    await scene.clear()
    assert await scene.actions(line=5) == {}
    await scene.run([])
    assert "applied the merged version" in scene.heard()


async def test_where_both_changed_the_same_line_no_merge_is_offered(scene: Scene) -> None:
    path = scene.path()
    path.write_text(OLD)
    mine = OLD.replace("two", "two, mine")
    await scene.run([read("a.txt")], [lambda: path.write_text(mine), write("a.txt", OLD.replace("two", "TWO"))])
    await scene.shown()
    assert list(await scene.actions(line=1)) == [RETRY, KEEP, "Dismiss", "Show difference"]
    assert "merged" not in await scene.conflict()


@pytest.mark.requirement("R11.4")
@pytest.mark.parametrize("name", AMBIGUOUS)
@pytest.mark.parametrize(
    ("which", "result"),
    [(0, TWICE.replace("    x", "    y", 1)), (1, "    y".join(TWICE.rsplit("    x", 1)))],
    ids=["first", "second"],
)
async def test_each_candidate_is_shown_and_can_be_chosen(scene: Scene, name: str, which: int, result: str) -> None:
    await ambiguous(scene, name)
    diagnostic = await scene.shown()
    assert diagnostic["code"] == CODES[name]
    assert diagnostic["range"]["start"]["line"] == 1
    related = diagnostic["relatedInformation"]
    assert [one["location"]["range"]["start"]["line"] for one in related] == [1, 4]
    assert {one["location"]["uri"] for one in related} == {scene.uri()}
    await scene.act(f"Apply here: line {(2, 5)[which]}")
    assert scene.path().read_text() == result
    await scene.clear()
    await scene.run([])
    assert "at a place of their choice" in scene.heard()


@pytest.mark.parametrize("title", [KEEP, "Dismiss"])
async def test_keeping_and_dismissing_change_no_byte_and_start_nothing(scene: Scene, title: str) -> None:
    await changed_elsewhere(scene)
    before = scene.path().stat()
    asked = len(scene.model.requests[scene.tag])
    await scene.act(title)
    await scene.clear()
    after = scene.path().stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert scene.path().read_text() == MINE
    assert len(scene.model.requests[scene.tag]) == asked


async def test_retry_starts_a_run_in_which_the_model_is_asked_to_read_again(scene: Scene) -> None:
    await changed_elsewhere(scene)
    scene.model.turns[scene.tag] = [
        [read("a.txt")],
        [write("a.txt", MINE.replace("two", "TWO"))],
        reply("Now it is in."),
    ]
    await scene.act(RETRY)
    started = await scene.editor.event("run_started", trigger="retry")
    end = await scene.editor.run_end(started["runId"])
    assert end["status"] == "succeeded"
    assert "read a.txt again" in scene.heard()
    assert scene.path().read_text() == MINE.replace("two", "TWO")
    await scene.clear()


async def test_the_difference_shows_what_was_seen_what_is_there_now_and_what_was_wanted(scene: Scene) -> None:
    await changed_elsewhere(scene)
    later = MINE.replace("four", "four, later")
    scene.path().write_text(later)
    diff = await scene.act("Show difference")
    wanted = OLD.replace("two", "TWO")
    assert diff["files"] == [{"uri": scene.uri(), "before": OLD, "after": later, "proposed": wanted}]
    assert scene.path().read_text() == later
    assert await scene.actions(line=5) != {}, "looking settles nothing"


# -- the person deleted the file --------------------------------------------------------------------------------------

AGAIN, LEAVE = "Write the file again, with the refused change", "Leave the file deleted"
DELETED: dict[str, ToolUse] = {
    "write_file": write("a.txt", OLD.replace("two", "TWO")),
    "edit_file": edit("a.txt", "two\n", "TWO\n"),
    "apply_patch": patch("*** Update File: a.txt\n@@\n-two\n+TWO\n*** Add File: new/b.txt\n+b\n"),
}


async def deleted_meanwhile(scene: Scene, name: str) -> None:
    scene.path().write_text(OLD)
    await scene.run([read("a.txt")], [scene.path().unlink, DELETED[name]])
    assert list(scene.folder.iterdir()) == []
    await scene.shown()


@pytest.mark.requirement("R11.4")
@pytest.mark.parametrize("name", DELETED)
async def test_a_deleted_file_can_be_written_again_with_the_change(scene: Scene, name: str) -> None:
    await deleted_meanwhile(scene, name)
    actions = await scene.actions()
    assert list(actions) == [AGAIN, RETRY, LEAVE, "Dismiss", "Show difference"]
    assert not any(action.get("isPreferred") for action in actions.values()), "never done by an automatic fix"
    (file,) = (await scene.choose(actions["Show difference"]))["files"]
    assert (file["before"], file.get("after"), file["proposed"]) == (OLD, None, OLD.replace("two", "TWO"))
    await scene.choose(actions[AGAIN])
    assert scene.path().read_text() == OLD.replace("two", "TWO")
    assert (scene.folder / "new/b.txt").exists() == (name == "apply_patch"), "a patch is carried out whole"
    await scene.clear()


@pytest.mark.parametrize("title", [LEAVE, "Dismiss"])
@pytest.mark.parametrize("name", DELETED)
async def test_a_deleted_file_can_be_left_deleted(scene: Scene, name: str, title: str) -> None:
    await deleted_meanwhile(scene, name)
    await scene.act(title)
    await scene.clear()
    assert list(scene.folder.iterdir()) == []


async def test_a_file_that_came_back_is_not_written_over_by_an_old_choice(scene: Scene) -> None:
    await deleted_meanwhile(scene, "write_file")
    action = (await scene.actions())[AGAIN]
    scene.path().write_text(OLD.replace("two", "two, mine"))
    with pytest.raises(RequestFailed) as refused:
        await scene.choose(action)
    assert refused.value.reason == "ActionNotAvailable"
    assert scene.path().read_text() == OLD.replace("two", "two, mine")
    assert AGAIN not in await scene.actions(line=0)


# -- the person goes on -----------------------------------------------------------------------------------------------


@pytest.mark.scenario("d05")
async def test_marks_and_places_follow_the_text_while_the_person_types(scene: Scene) -> None:
    await ambiguous(scene)
    window = await scene.open(TWICE)
    typed = "a new\nbeginning\n" + TWICE.replace("middle", "middle\nand more")
    await window.type(typed)
    moved = await scene.editor.wait_for(
        lambda: [d for d in scene.editor.diagnostics(scene.uri()) if d["range"]["start"]["line"] == 3],
        "the mark to move",
    )
    assert [one["location"]["range"]["start"]["line"] for one in moved[0]["relatedInformation"]] == [3, 7]
    assert await scene.actions(line=1) == {}
    actions = await scene.actions(line=3)
    assert [title for title in actions if title.startswith("Apply")] == ["Apply here: line 4", "Apply here: line 8"]
    await scene.choose(actions["Apply here: line 8"])
    assert window.text == "    y".join(typed.rsplit("    x", 1)), "unsaved text is edited in the editor"
    assert scene.path().read_text() == TWICE, "and never behind it"
    await scene.clear()


async def test_a_mark_follows_a_file_that_nobody_has_open(scene: Scene) -> None:
    await ambiguous(scene)
    scene.path().write_text("later\n" * 3 + TWICE)
    moved = await scene.editor.wait_for(
        lambda: [one for one in scene.editor.diagnostics(scene.uri()) if one["range"]["start"]["line"] == 4],
        "the mark to move",
    )
    assert [one["location"]["range"]["start"]["line"] for one in moved[0]["relatedInformation"]] == [4, 7]
    window = await scene.open("first\n" + "later\n" * 3 + TWICE)
    assert [one["range"]["start"]["line"] for one in scene.editor.diagnostics(scene.uri())] == [5]
    await window.close()
    (shown,) = await scene.editor.wait_for(
        lambda: [one for one in scene.editor.diagnostics(scene.uri()) if one["range"]["start"]["line"] == 4],
        "the mark where the disk has the text",
    )
    assert shown["code"] == "patch-conflict"
    await scene.choose((await scene.actions(line=4))["Apply here: line 8"])
    assert scene.path().read_text() == "later\n" * 3 + "    y".join(TWICE.rsplit("    x", 1))
    await scene.clear()


async def test_a_conflict_whose_file_went_on_is_looked_at_anew_when_its_actions_are_asked_for(scene: Scene) -> None:
    await ambiguous(scene)
    scene.path().write_text("later\n" * 3 + TWICE)
    actions = await scene.actions(last=9)
    assert [title for title in actions if title.startswith("Apply")] == ["Apply here: line 5", "Apply here: line 8"]
    scene.path().write_text(TWICE.replace("if a:", "if b:", 1))
    actions = await scene.actions(last=9)
    assert [title for title in actions if title.startswith("Apply")] == [MERGE], "one place is left: it fits by now"
    await scene.choose(actions[MERGE])
    assert scene.path().read_text() == "    y".join(TWICE.replace("if a:", "if b:", 1).rsplit("    x", 1))
    await scene.clear()


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_a_place_chosen_in_a_text_that_moved_meanwhile_is_refused_and_nothing_is_written(
    scene: Scene, name: str
) -> None:
    await ambiguous(scene, name)
    action = (await scene.actions(line=1))["Apply here: line 5"]
    later = TWICE.removeprefix("top\nif a:\n    x\n").replace("middle", "a\nb\nc\nd\nif a:\n    x\nmiddle")
    scene.path().write_text(later)
    with pytest.raises(RequestFailed) as refused:
        await scene.choose(action)
    assert refused.value.reason == "ActionNotAvailable"
    assert "Nothing was changed" in refused.value.message
    assert scene.path().read_text() == later
    assert (await scene.shown())["code"] == CODES[name], "it stays until it is settled"


async def test_a_merge_that_is_none_any_more_is_refused_and_nothing_is_written(scene: Scene) -> None:
    await changed_elsewhere(scene)
    action = (await scene.actions(line=5))[MERGE]
    theirs = OLD.replace("two", "2")
    scene.path().write_text(theirs)
    assert MERGE not in await scene.actions(line=5)
    with pytest.raises(RequestFailed) as refused:
        await scene.choose(action)
    assert refused.value.reason == "ActionNotAvailable"
    assert scene.path().read_text() == theirs


async def test_of_two_windows_one_settles_and_both_are_cleared(scene: Scene, stage: Stage) -> None:
    await changed_elsewhere(scene)
    async with stage.scene(scene.folder) as other:
        await other.shown()
        action = (await other.actions(line=5))[MERGE]
        await scene.act(MERGE)
        await other.clear()
        with pytest.raises(RequestFailed) as refused:
            await other.choose(action)
        assert refused.value.reason == "ActionNotAvailable"
    assert scene.path().read_text() == MINE.replace("two", "TWO")


@pytest.mark.parametrize("titles", [(RETRY, RETRY), (RETRY, MERGE)], ids=["retry twice", "retry and merge"])
async def test_of_two_windows_that_choose_at_once_one_decides(
    scene: Scene, stage: Stage, titles: tuple[str, str]
) -> None:
    await changed_elsewhere(scene)
    async with stage.scene(scene.folder) as other:
        await other.shown()
        mine, theirs = (await scene.actions(line=5))[titles[0]], (await other.actions(line=5))[titles[1]]
        done = await asyncio.gather(scene.choose(mine), other.choose(theirs), return_exceptions=True)
        refused = [one for one in done if isinstance(one, RequestFailed)]
        assert [one.reason for one in refused] == ["ActionNotAvailable"], done
        await scene.clear()
        await other.clear()
    resolved = scene.editor.events(type_="conflict_resolved")
    assert len(resolved) == 1
    started = [one for one in scene.editor.events(type_="run_started") if one["trigger"] == "retry"]
    assert len(started) == (resolved[0]["action"] == "retry")
    for one in started:
        await scene.editor.run_end(one["runId"])


async def test_each_hunk_that_does_not_fit_has_a_mark_of_its_own(scene: Scene) -> None:
    scene.path().write_text("a\nb\n" * 2 + "mid\n" + "c\nd\n" * 2)
    await scene.run([patch("*** Update File: a.txt\n@@\n a\n-b\n+B\n@@\n c\n-d\n+D\n")])
    found = await scene.editor.wait_for(lambda: scene.editor.diagnostics(scene.uri()), "the diagnostics")
    assert [one["range"]["start"]["line"] for one in found] == [0, 5]
    assert len({one["data"]["conflictId"] for one in found}) == 1
    assert not [title for title in await scene.actions(line=0) if title.startswith("Apply here")]


async def test_a_line_that_only_resembles_is_shown_but_never_offered(scene: Scene) -> None:
    scene.path().write_text("def f():\n\tx\n")
    await scene.run([patch("*** Update File: a.txt\n@@\n-    x\n+    y\n")])
    diagnostic = await scene.shown()
    assert diagnostic["range"]["start"]["line"] == 1
    assert list(await scene.actions(line=1)) == [RETRY, KEEP, "Dismiss", "Show difference"]
