"""A person edits between the model's read and its write, in six ways, against three tools (issue B, 4; R11).

Nothing of theirs is lost, the refusal reaches the model with the text as it is now, the diagnostic stands on the right line, and the
run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edits.scene import Scene, edit, patch, read, write
from fake_api import ToolUse, reply, tool

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
NEW = OLD.replace("two", "TWO")
HUNK = "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n"
CALLS: dict[str, ToolUse] = {
    "write_file": write("a.txt", NEW),
    "edit_file": edit("a.txt", "two\n", "TWO\n"),
    "apply_patch": patch(HUNK),
}
"""Each tool's way to want the same."""
WORDS = {"write_file": "FILE_CHANGED", "edit_file": "FILE_CHANGED", "apply_patch": "PATCH_CONFLICT"}
CODES = {"FILE_CHANGED": "file-changed", "PATCH_CONFLICT": "patch-conflict"}


def elsewhere(path: Path) -> None:
    path.write_text(OLD.replace("six", "six, mine"))


def same_line(path: Path) -> None:
    path.write_text(OLD.replace("two", "two, mine"))


def deleted(path: Path) -> None:
    path.unlink()


def became_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine").write_text("mine\n")


def touched(path: Path) -> None:
    os.utime(path, (1, 1))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.requirement("R11.2")
@pytest.mark.scenario("c01")
@pytest.mark.parametrize("name", CALLS)
async def test_a_file_that_was_only_touched_is_written_without_another_read(scene: Scene, name: str) -> None:
    path = scene.path()
    path.write_text(OLD)
    await scene.run([read("a.txt")], [lambda: touched(path), CALLS[name]])
    assert path.read_text() == NEW
    assert not scene.editor.events(type_="conflict_raised")


@pytest.mark.requirement("R11.3")
@pytest.mark.parametrize("name", ["edit_file", "apply_patch"])
async def test_an_edit_at_another_place_is_kept_and_the_change_goes_where_its_text_stands(
    scene: Scene, name: str
) -> None:
    path = scene.path()
    path.write_text(OLD)
    await scene.run([read("a.txt")], [lambda: elsewhere(path), CALLS[name]])
    assert path.read_text() == NEW.replace("six", "six, mine")
    await scene.clear()


@pytest.mark.requirement("R11.2")
@pytest.mark.requirement("R11.4")
@pytest.mark.parametrize(
    ("name", "act", "line"),
    [("write_file", elsewhere, 5)]
    + [(name, same_line, 1) for name in CALLS]
    + [(name, act, 0) for name in CALLS for act in (deleted, became_directory)],
)
async def test_an_edit_that_the_write_would_destroy_refuses_it_and_is_shown_where_it_is(
    scene: Scene, name: str, act: Callable[[Path], None], line: int
) -> None:
    path = scene.path()
    path.write_text(OLD)
    await scene.run([read("a.txt")], [lambda: act(path), CALLS[name]])
    expected = scene.folder.parent / "expected"
    expected.mkdir()
    (expected / "a.txt").write_text(OLD)
    act(expected / "a.txt")
    assert tree(scene.folder) == tree(expected), "every byte of the person's is there, and nothing else"

    told, word = scene.told(), WORDS[name]
    assert word in told and "What to do:" in told
    if path.is_file():
        assert path.read_text() in told, "one retry suffices"
    if act is deleted:
        assert "is not there now" in told
    diagnostic = await scene.shown()
    assert (diagnostic["code"], diagnostic["source"], diagnostic["severity"]) == (CODES[word], "standfast", 2)
    assert diagnostic["range"]["start"] == {"line": line, "character": 0}
    raised = await scene.editor.event("conflict_raised")
    assert diagnostic["data"] == {"sessionId": scene.session_id, "conflictId": raised["conflictId"]}


@pytest.mark.requirement("R11.4")
@pytest.mark.scenario("c04")
@pytest.mark.parametrize("name", CALLS)
async def test_the_run_goes_on_and_a_later_write_supersedes_the_diagnostic(scene: Scene, name: str) -> None:
    path = scene.path()
    path.write_text(OLD)
    await scene.run(
        [read("a.txt")],
        [lambda: same_line(path), CALLS[name]],
        [edit("a.txt", "two, mine\n", "TWO, mine\n")],
    )
    assert WORDS[name] in scene.heard()
    assert path.read_text() == OLD.replace("two", "TWO, mine")
    await scene.editor.event("conflict_resolved", action="superseded")
    await scene.clear()


@pytest.mark.scenario("c04")
async def test_after_a_formatter_ran_one_retry_is_enough(scene: Scene) -> None:
    path = scene.path("a.js")
    path.write_text("f( 1 )\n")
    await scene.run(
        [read("a.js")],
        [patch("*** Update File: a.js\n@@\n f( 1 )\n+g( 2 )\n")],
        [
            lambda: path.write_text("f(1)\ng(2)\n"),
            patch("*** Update File: a.js\n@@\n f( 1 )\n-g( 2 )\n+h( 3 )\n"),
        ],
        [patch("*** Update File: a.js\n@@\n f(1)\n-g(2)\n+h(3)\n")],
    )
    assert "PATCH_CONFLICT" in scene.heard() and "f(1)\ng(2)\n" in scene.heard()
    assert path.read_text() == "f(1)\nh(3)\n"
    await scene.clear("a.js")


@pytest.mark.scenario("c02")
async def test_other_content_under_the_same_time_and_size_is_a_change(scene: Scene) -> None:
    path = scene.path()
    path.write_text("x=1\n")
    found = path.stat()

    def swap() -> None:
        path.write_text("x=9\n")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    await scene.run([read("a.txt")], [swap, write("a.txt", "x=2\n")])
    assert path.read_text() == "x=9\n"
    assert "FILE_CHANGED" in scene.told()
    diff = await scene.act("Show difference")
    assert diff["files"] == [{"uri": scene.uri(), "before": "x=1\n", "after": "x=9\n", "proposed": "x=2\n"}]


@pytest.mark.scenario("c08")
async def test_the_agent_keeps_no_copy_of_its_own(scene: Scene) -> None:
    path = scene.path("t")
    path.write_text("1\n2\n3\n")
    await scene.run(
        [read("t")], [edit("t", "2\n", "4\n")], [lambda: path.write_text("1\n2\n3\n"), edit("t", "3\n", "1\n")]
    )
    assert path.read_text() == "1\n2\n1\n"


@pytest.mark.scenario("c11")
async def test_text_with_a_character_across_a_block_border_is_read_and_patched(scene: Scene) -> None:
    path = scene.path("n.md")
    path.write_text("a" * 999 + "ç\nx\n")
    await scene.run([read("n.md")], [patch("*** Update File: n.md\n@@\n-x\n+y\n")])
    assert "ç" in scene.heard()
    assert path.read_text() == "a" * 999 + "ç\ny\n"


@pytest.mark.scenario("c12")
async def test_cut_arguments_write_nothing(scene: Scene) -> None:
    scene.path().write_text(OLD)
    cut = reply(tools=[tool("write_file", raw='{"path":"a.txt","content":"half')], stop_reason="max_tokens")
    await scene.run([read("a.txt")], cut)
    assert scene.path().read_text() == OLD
    assert "incomplete" in scene.told()


@pytest.mark.requirement("R11.1")
async def test_a_file_that_was_not_read_whole_is_not_written_whole(scene: Scene) -> None:
    scene.path().write_text(OLD)
    await scene.run([write("a.txt", "x\n")])
    assert "FILE_NOT_READ" in scene.told()
    assert scene.path().read_text() == OLD
    assert (await scene.shown())["code"] == "file-changed"
    await scene.run([read("a.txt")], [write("a.txt", "x\n")])
    assert scene.path().read_text() == "x\n"
    await scene.clear()
