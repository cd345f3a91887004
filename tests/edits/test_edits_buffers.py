"""Unsaved text is the truth: reads return it, writes go to it through the editor, and the disk is never written behind it.

An editor that takes, refuses, lies, or types meanwhile (design.md "Buffers"; patch cases; d01, d03, d08, d18).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edits.scene import CAN_EDIT, Scene, Stage, edit, patch, read, write
from fake_api import ToolUse

CASES = Path(__file__).parent.parent / "patch_cases"
DISK = "one\ntwo\nthree\nfour\nfive\nsix\n"
MINE = DISK + "mine\n"
WANTED = MINE.replace("two", "TWO")
PATCH = patch("*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n")
CALLS: dict[str, ToolUse] = {
    "apply_patch": PATCH,
    "edit_file": edit("a.txt", "two\n", "TWO\n"),
    "write_file": write("a.txt", WANTED),
}
NO_EDITS: dict[str, Any] = {}
RETRY, KEEP = "Let the agent read the file again and retry", "Keep the file as it is"
MERGE = "Apply merged: keep both changes"


def with_encoding(encoding: str) -> dict[str, Any]:
    return {**CAN_EDIT, "general": {"positionEncodings": [encoding]}}


def buffer_cases() -> list[Path]:
    return [path for path in sorted(CASES.rglob("*.json")) if "buffers" in json.loads(path.read_text())]


@pytest.mark.scenario("070_dirty_buffer")
@pytest.mark.parametrize("case", buffer_cases(), ids=lambda path: path.stem)
@pytest.mark.parametrize("can_edit", [True, False])
async def test_a_patch_case_with_buffers_ends_as_it_says(
    stage: Stage, folder: Path, case: Path, can_edit: bool
) -> None:
    """Through an editor that takes edits: the acceptable outcome in the buffer. Through one that cannot: the conflict."""
    facts = json.loads(case.read_text())
    for name, file in facts["files"].items():
        (folder / name).write_text(file["text"])
    async with stage.scene(folder, capabilities=CAN_EDIT if can_edit else NO_EDITS, pump=True) as scene:
        windows = {
            name: await scene.open(buffer["text"], name, version=buffer["version"])
            for name, buffer in facts["buffers"].items()
        }
        await scene.run([patch(facts["patch"].removeprefix("*** Begin Patch\n").removesuffix("*** End Patch\n"))])
        acceptable = [one for one in facts.get("also_acceptable", ()) if "result_buffers" in one]
        outcome = acceptable[0] if can_edit and acceptable else facts
        files = facts["files"] if outcome["result_files"] == "unchanged" else outcome["result_files"]
        assert {path.name: path.read_text() for path in folder.iterdir()} == {
            name: file["text"] for name, file in files.items()
        }, "never behind the editor"
        if outcome is not facts:
            assert {name: window.text for name, window in windows.items()} == outcome["result_buffers"]
            for name, window in windows.items():
                (change,) = window.asked
                assert change["textDocument"]["version"] == facts["buffers"][name]["version"]
            await scene.clear()
        else:
            raised = await scene.editor.event("conflict_raised")
            assert raised["reason"] == facts["conflict"]["reason"]
            diagnostic = await scene.shown(facts["conflict"]["path"])
            assert diagnostic["code"] == "patch-conflict"
            assert all(window.text == facts["buffers"][name]["text"] for name, window in windows.items())


@pytest.mark.scenario("d01")
@pytest.mark.parametrize("name", CALLS)
async def test_the_model_reads_unsaved_text_and_changes_it_in_the_editor(scene: Scene, name: str) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(MINE, version=5)
    await scene.run([read("a.txt")], [CALLS[name]])
    assert "mine" in scene.heard() and "unsaved" in scene.heard()
    assert window.text == WANTED
    assert [change["textDocument"]["version"] for change in window.asked] == [5]
    assert scene.path().read_text() == DISK
    assert "not saved" in scene.told()
    await scene.clear()


@pytest.mark.scenario("d18")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_edits_land_between_emoji_and_chinese_in_the_clients_own_units(
    stage: Stage, folder: Path, encoding: str
) -> None:
    disk = 'x = "😋"\n'
    mine = 'x = "😋"\n名字 = "你好 👩‍👩‍👧 𠮷"\nlast = "😋未存"'
    (folder / "a.txt").write_text(disk)
    async with stage.scene(folder, capabilities=with_encoding(encoding), pump=True) as scene:
        assert scene.editor.server["capabilities"]["positionEncoding"] == encoding
        window = await scene.open(mine, version=3)
        await scene.run(
            [edit("a.txt", "你好", "再见 😀")],
            [patch('*** Update File: a.txt\n@@\n-last = "😋未存"\n+last = "😋存"\n')],
        )
        assert window.text == mine.replace("你好", "再见 😀").replace("未存", "存")
        assert len(window.asked) == 2
        assert (folder / "a.txt").read_text() == disk
        (end,) = window.asked[1]["edits"]
        units = {"utf-8": 19, "utf-16": 13, "utf-32": 12}[encoding]
        assert end["range"]["end"] == {"line": 2, "character": units}


@pytest.mark.scenario("d08")
@pytest.mark.parametrize(
    "how",
    [
        {"says": False, "takes": False},
        {"says": True, "reports": "banana\n"},
        {"says": False, "takes": False, "types": "typed\n"},
    ],
    ids=["says no", "says yes and reports another text", "the person typed first"],
)
@pytest.mark.parametrize("name", CALLS)
async def test_an_edit_that_the_editor_did_not_make_is_a_conflict_and_the_unsaved_text_is_the_persons(
    scene: Scene, name: str, how: dict[str, Any]
) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(MINE, version=5, **how)
    await scene.run([read("a.txt")], [CALLS[name]])
    assert len(window.asked) == 1, "it is never repeated"
    assert window.text == how.get("reports", MINE + how.get("types", ""))
    assert scene.path().read_text() == DISK
    raised = await scene.editor.event("conflict_raised")
    assert raised["reason"] == "dirty_buffer"
    assert "(dirty_buffer)" in scene.told()
    assert (await scene.shown())["code"] == ("patch-conflict" if name == "apply_patch" else "file-changed")


async def test_an_editor_that_says_yes_and_then_nothing_leaves_it_unknown_and_is_not_asked_again(scene: Scene) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(MINE, version=5, says=True, takes=False)
    await scene.run([PATCH])
    assert len(window.asked) == 1
    assert "unknown" in scene.told() and "not repeated" in scene.told()
    assert scene.path().read_text() == DISK
    assert (await scene.editor.event("conflict_raised"))["reason"] == "dirty_buffer"


async def test_typing_while_the_edit_is_made_does_not_undo_its_success(scene: Scene) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(MINE, version=5, types="typed meanwhile\n")
    await scene.run([PATCH])
    assert window.text == WANTED + "typed meanwhile\n"
    assert "Changed a.txt in the editor" in scene.told()
    await scene.clear()


async def test_what_could_not_be_edited_can_be_applied_once_it_is_saved(stage: Stage, folder: Path) -> None:
    (folder / "a.txt").write_text(DISK)
    async with stage.scene(folder, capabilities=NO_EDITS) as scene:
        window = await scene.open(MINE)
        await scene.run([PATCH])
        diagnostic = await scene.shown()
        assert diagnostic["code"] == "patch-conflict"
        scene.path().write_text(MINE)
        await scene.editor.notify("textDocument/didSave", {"textDocument": {"uri": window.uri}})
        await scene.act(MERGE)
        assert scene.path().read_text() == WANTED
        await scene.clear()


@pytest.mark.requirement("R11.4")
async def test_two_editors_with_different_unsaved_text_stop_a_write_and_the_newest_is_read(
    scene: Scene, stage: Stage
) -> None:
    scene.path().write_text(DISK)
    first = await scene.open(DISK + "first\n")
    async with stage.scene(scene.folder) as other:
        second = await other.open(DISK + "second\n")
        await scene.run([read("a.txt")], [PATCH])
        assert "second" in scene.heard()
        assert (first.asked, second.asked) == ([], [])
        assert scene.path().read_text() == DISK
        assert (await scene.editor.event("conflict_raised"))["reason"] == "dirty_buffer"
        assert "two editors" in scene.told()
        await scene.shown()
        await other.shown()
        await second.type(DISK + "first\n")
        await scene.run([PATCH])
        assert sorted(len(window.asked) for window in (first, second)) == [0, 1]


@pytest.mark.scenario("d03")
async def test_a_clean_buffer_leaves_the_file_to_the_disk(scene: Scene) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(DISK)
    await scene.run([PATCH])
    assert window.asked == []
    assert scene.path().read_text() == DISK.replace("two", "TWO")


@pytest.mark.parametrize("change", ["*** Delete File: a.txt\n", "*** Update File: a.txt\n*** Move to: b.txt\n"])
async def test_a_file_with_unsaved_text_is_neither_deleted_nor_moved_away(scene: Scene, change: str) -> None:
    scene.path().write_text(DISK)
    window = await scene.open(MINE)
    await scene.run([patch(change)])
    assert scene.path().read_text() == DISK and not scene.path("b.txt").exists()
    assert window.text == MINE
    assert (await scene.editor.event("conflict_raised"))["reason"] == "dirty_buffer"


async def test_a_patch_over_a_buffer_and_a_file_is_one_all_or_nothing(scene: Scene) -> None:
    scene.path().write_text(DISK)
    scene.path("b.txt").write_text(DISK)
    window = await scene.open(MINE, version=2, says=False, takes=False)
    both = patch("*** Update File: a.txt\n@@\n-two\n+TWO\n*** Update File: b.txt\n@@\n-two\n+TWO\n")
    await scene.run([both])
    assert (window.text, scene.path("b.txt").read_text()) == (MINE, DISK)
    window.says, window.takes = True, True
    await scene.run([both])
    assert (window.text, scene.path("b.txt").read_text()) == (WANTED, DISK.replace("two", "TWO"))
    assert scene.path().read_text() == DISK
