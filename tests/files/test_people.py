"""A person edits between the model's read and its write: nothing of theirs is lost, each way out does what it says (issue B, 4)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from files_desk import Desk, OneEditor, Started, snapshot

OLD = "one\ntwo\nthree\nfour\nfive\nsix\n"
NEW = OLD.replace("two", "TWO")


def args_of(tool: str) -> dict[str, str]:
    """Each tool's way to want the same: `two` becomes `TWO`."""
    if tool == "write_file":
        return {"path": "a.txt", "content": NEW}
    if tool == "edit_file":
        return {"path": "a.txt", "old_text": "two\n", "new_text": "TWO\n"}
    return {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n*** End Patch"}


def other_place(path: Path) -> None:
    path.write_text(OLD.replace("six", "SIX, mine"))


def same_line(path: Path) -> None:
    path.write_text(OLD.replace("two", "two, mine"))


def deleted(path: Path) -> None:
    path.unlink()


def became_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine").write_text("mine\n")


def only_touched(path: Path) -> None:
    os.utime(path, (1, 1))


WORDS = {"write_file": "FILE_CHANGED", "edit_file": "FILE_CHANGED", "apply_patch": "PATCH_CONFLICT"}


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    (tmp_path / "a.txt").write_text(OLD)
    desk = Desk(tmp_path)
    assert (await desk.call("read_file", path="a.txt")).status == "ok"
    return desk


@pytest.mark.requirement("R11.2")
@pytest.mark.scenario("c01")
@pytest.mark.parametrize("tool", WORDS)
async def test_a_touched_file_is_the_same_file(desk: Desk, tool: str) -> None:
    only_touched(desk.folder / "a.txt")
    assert (await desk.call(tool, **args_of(tool))).status == "ok"
    assert (desk.folder / "a.txt").read_text() == NEW


@pytest.mark.requirement("R11.2")
@pytest.mark.requirement("R11.3")
@pytest.mark.parametrize("edit", [other_place, same_line, deleted, became_directory])
@pytest.mark.parametrize("tool", WORDS)
async def test_an_edit_before_the_call_is_never_lost(desk: Desk, tool: str, edit: Callable[[Path], None]) -> None:
    edit(desk.folder / "a.txt")
    mine = snapshot(desk.folder)
    outcome = await desk.call(tool, **args_of(tool))
    if edit is other_place and tool != "write_file":
        assert outcome.status == "ok"
        assert (desk.folder / "a.txt").read_text() == NEW.replace("six", "SIX, mine")
        return
    assert (outcome.status, outcome.reason) == ("error", WORDS[tool])
    assert WORDS[tool] in outcome.content
    assert [one.path for one in outcome.conflicts] == ["a.txt"]
    assert snapshot(desk.folder) == mine


@pytest.mark.requirement("R11.3")
@pytest.mark.parametrize("edit", [other_place, same_line, deleted, became_directory])
@pytest.mark.parametrize("tool", WORDS)
async def test_an_edit_while_the_permission_is_open_is_never_lost(
    desk: Desk, tool: str, edit: Callable[[Path], None]
) -> None:
    started = await desk.start(tool, **args_of(tool))
    assert isinstance(started, Started)
    edit(desk.folder / "a.txt")
    mine = snapshot(desk.folder)
    outcome = await desk.finish(started)
    assert (outcome.status, outcome.reason) == ("error", WORDS[tool])
    assert snapshot(desk.folder) == mine
    verification = await started.tool.verify(started.call, started.ctx)
    assert verification.verdict == "diverged"
    assert snapshot(desk.folder) == mine


@pytest.mark.parametrize("tool", WORDS)
async def test_a_save_in_the_very_moment_of_the_write_wins(
    desk: Desk, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = await desk.start(tool, **args_of(tool))
    assert isinstance(started, Started)

    def save(place: str) -> None:
        """The editor saves between the last look and the exchange, by a new file as most do."""
        if place == "before_exchange":
            (desk.folder / "saved").write_text("mine\n")
            (desk.folder / "saved").rename(desk.folder / "a.txt")

    monkeypatch.setattr("standfast.files.transaction.hit", save)
    outcome = await desk.finish(started)
    assert outcome.reason == WORDS[tool]
    assert snapshot(desk.folder) == {"a.txt": (b"mine\n", 0o644)}


async def test_a_program_that_still_writes_into_the_old_file_stops_the_write(desk: Desk) -> None:
    started = await desk.start("write_file", **args_of("write_file"))
    with (desk.folder / "a.txt").open("r+b") as theirs:
        outcome = await desk.finish(started)
        theirs.write(b"ONE")
    assert outcome.reason == "FILE_CHANGED"
    assert (desk.folder / "a.txt").read_text() == OLD.replace("one", "ONE")


@pytest.mark.scenario("c02")
async def test_a_change_with_the_same_size_and_mtime_is_noticed(desk: Desk) -> None:
    path = desk.folder / "a.txt"
    found = path.stat()
    path.write_text(OLD.replace("one", "ONE"))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    outcome = await desk.call("write_file", **args_of("write_file"))
    assert outcome.reason == "FILE_CHANGED"


@pytest.mark.requirement("R11.1")
async def test_a_whole_write_needs_the_whole_file_read(desk: Desk) -> None:
    (desk.folder / "b.txt").write_text(OLD)
    outcome = await desk.call("write_file", path="b.txt", content="x\n")
    assert outcome.reason == "FILE_NOT_READ" and "FILE_NOT_READ" in outcome.content
    desk.seen.pop("b.txt")
    assert (await desk.call("read_file", path="b.txt", limit=2)).seen[0].whole is False
    assert (await desk.call("write_file", path="b.txt", content="x\n")).reason == "FILE_NOT_READ"
    assert (desk.folder / "b.txt").read_text() == OLD
    await desk.call("read_file", path="b.txt")
    assert (await desk.call("write_file", path="b.txt", content="x\n")).status == "ok"
    assert (await desk.call("write_file", path="b.txt", content="y\n")).status == "ok", "its own write counts as read"


async def test_an_expected_version_that_is_not_there_is_a_change(desk: Desk) -> None:
    outcome = await desk.call("write_file", path="a.txt", content="x\n", expected_version="0" * 64)
    assert outcome.reason == "FILE_CHANGED"


@pytest.mark.scenario("c04")
async def test_the_refusal_holds_what_one_retry_needs(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("f( 1 )\n")
    desk = Desk(tmp_path)
    patch = "*** Begin Patch\n*** Update File: a.js\n@@\n f( 1 )\n+g( 2 )\n*** End Patch"
    assert (await desk.call("apply_patch", patch=patch)).status == "ok"
    (tmp_path / "a.js").write_text("f(1)\ng(2)\n")
    stale = "*** Begin Patch\n*** Update File: a.js\n@@\n f( 1 )\n-g( 2 )\n+h( 3 )\n*** End Patch"
    outcome = await desk.call("apply_patch", patch=stale)
    assert outcome.reason == "PATCH_CONFLICT"
    assert "f(1)\ng(2)\n" in outcome.content
    again = "*** Begin Patch\n*** Update File: a.js\n@@\n f(1)\n-g(2)\n+h(3)\n*** End Patch"
    assert (await desk.call("apply_patch", patch=again)).status == "ok"
    assert (await desk.call("write_file", path="a.js", content="x\n")).status == "ok"


@pytest.mark.scenario("c08")
async def test_a_second_edit_starts_from_the_disk(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n2\n3\n")
    desk = Desk(tmp_path)
    await desk.call("edit_file", path="t", old_text="2", new_text="4")
    (tmp_path / "t").write_text("1\n2\n3\n")
    await desk.call("edit_file", path="t", old_text="3", new_text="1")
    assert (tmp_path / "t").read_text() == "1\n2\n1\n"


@pytest.mark.scenario("c11")
async def test_a_character_on_a_sample_border_is_text(tmp_path: Path) -> None:
    (tmp_path / "n.md").write_text("a" * 999 + "ç\nx\n")
    desk = Desk(tmp_path)
    assert "ç" in (await desk.call("read_file", path="n.md")).content
    outcome = await desk.call("apply_patch", patch="*** Begin Patch\n*** Update File: n.md\n@@\n-x\n+y\n*** End Patch")
    assert outcome.status == "ok"
    assert (tmp_path / "n.md").read_text() == "a" * 999 + "ç\ny\n"


# -- the ways out -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R11.4")
async def test_a_clean_merge_is_offered_and_applied_only_when_chosen(desk: Desk) -> None:
    other_place(desk.folder / "a.txt")
    refused = await desk.call("write_file", **args_of("write_file"))
    merged = refused.conflicts[0].merged_blob
    assert merged is not None
    assert desk.blobs[merged].decode() == NEW.replace("six", "SIX, mine")
    assert (await desk.resolve(refused, "merge")).status == "ok"
    assert (desk.folder / "a.txt").read_text() == NEW.replace("six", "SIX, mine")


@pytest.mark.requirement("R11.4")
async def test_a_merge_is_made_anew_when_the_person_went_on(desk: Desk) -> None:
    other_place(desk.folder / "a.txt")
    refused = await desk.call("write_file", **args_of("write_file"))
    (desk.folder / "a.txt").write_text(OLD.replace("five", "FIVE, mine"))
    assert (await desk.resolve(refused, "merge")).status == "ok"
    assert (desk.folder / "a.txt").read_text() == NEW.replace("five", "FIVE, mine")
    same_line(desk.folder / "a.txt")
    mine = snapshot(desk.folder)
    assert (await desk.resolve(refused, "merge")).status == "error"
    assert snapshot(desk.folder) == mine


@pytest.mark.requirement("R11.4")
async def test_the_same_line_offers_no_merge(desk: Desk) -> None:
    same_line(desk.folder / "a.txt")
    for tool in WORDS:
        refused = await desk.call(tool, **args_of(tool))
        assert refused.conflicts[0].merged_blob is None
        desk.seen["a.txt"] = desk.seen["a.txt"].model_copy(update={"version": "0" * 64})


@pytest.mark.requirement("R11.4")
@pytest.mark.parametrize("tool", ["apply_patch", "edit_file"])
async def test_a_candidate_that_the_person_chooses_is_the_one_that_is_changed(tool: str, tmp_path: Path) -> None:
    text = "a\nx = 0\nb\nx = 0\nc\nx = 0\n"
    (tmp_path / "r.py").write_text(text)
    desk = Desk(tmp_path)
    patch = "*** Begin Patch\n*** Add File: n\n+n\n*** Update File: r.py\n@@\n-x = 0\n+x = 1\n*** End Patch"
    args = {"patch": patch} if tool == "apply_patch" else {"path": "r.py", "old_text": "x = 0", "new_text": "x = 1"}
    refused = await desk.call(tool, **args)
    hunk = refused.conflicts[0].hunks[0]
    assert (hunk.reason, hunk.candidate_lines) == ("ambiguous", [2, 4, 6])
    (tmp_path / "r.py").write_text("mine\n" + text)
    assert (await desk.resolve(refused, "applyAt", line=9)).status == "error"
    assert (tmp_path / "r.py").read_text() == "mine\n" + text
    (tmp_path / "r.py").write_text(text)
    assert (await desk.resolve(refused, "applyAt", line=4)).status == "ok"
    assert (tmp_path / "r.py").read_text() == "a\nx = 0\nb\nx = 1\nc\nx = 0\n"
    assert (tmp_path / "n").exists() == (tool == "apply_patch")


@pytest.mark.scenario("c05")
async def test_the_rest_of_a_half_applied_patch_is_offered(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("A = 2\nmid = 0\nB = 1\n")
    desk = Desk(tmp_path)
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-A = 1\n+A = 2\n@@\n-B = 1\n+B = 2\n*** End Patch"
    refused = await desk.call("apply_patch", patch=patch)
    states = [(hunk.state, hunk.reason, hunk.line) for hunk in refused.conflicts[0].hunks]
    assert states == [("applied", "already_applied", 1), ("pending", None, 3)]
    assert (await desk.resolve(refused, "merge")).status == "ok"
    assert (tmp_path / "a.py").read_text() == "A = 2\nmid = 0\nB = 2\n"


# -- unsaved text -----------------------------------------------------------------------------------------------------


async def test_unsaved_text_is_what_is_read_and_it_is_marked(desk: Desk) -> None:
    desk.buffers = OneEditor(desk.folder, {"a.txt": OLD + "unsaved\n"})
    outcome = await desk.call("read_file", path="a.txt")
    assert "unsaved text in the editor" in outcome.content.split("\n")[0]
    assert outcome.content.endswith("unsaved\n")


@pytest.mark.parametrize("tool", WORDS)
async def test_a_write_to_unsaved_text_goes_through_the_editor(desk: Desk, tool: str) -> None:
    editor = OneEditor(desk.folder, {"a.txt": OLD})
    desk.buffers = editor
    before = snapshot(desk.folder)
    started = await desk.start(tool, **args_of(tool))
    assert isinstance(started, Started)
    assert [intent.kind for intent in started.call.intents] == ["buffer"]
    assert (await started.tool.verify(started.call, started.ctx)).verdict == "not_applied"
    assert (await desk.finish(started)).status == "ok"
    assert editor.texts == {"a.txt": NEW}
    assert snapshot(desk.folder) == before
    assert (await started.tool.verify(started.call, started.ctx)).verdict == "applied"
    editor.texts.clear()
    assert (await started.tool.verify(started.call, started.ctx)).verdict == "unknown"


@pytest.mark.parametrize("tool", WORDS)
@pytest.mark.parametrize(
    ("answer", "flags"),
    [("refused", {}), ("unknown", {}), ("applied", {"editable": False}), ("applied", {"disputed": True})],
)
async def test_an_editor_that_does_not_confirm_makes_a_conflict(
    desk: Desk, tool: str, answer: str, flags: dict[str, bool]
) -> None:
    editor = OneEditor(desk.folder, {"a.txt": OLD}, answer=answer, **flags)
    desk.buffers = editor
    before = snapshot(desk.folder)
    outcome = await desk.call(tool, **args_of(tool))
    assert outcome.status == "error"
    assert [one.reason for one in outcome.conflicts] == ["dirty_buffer"]
    assert (snapshot(desk.folder), editor.texts) == (before, {"a.txt": OLD})


@pytest.mark.parametrize("tool", WORDS)
async def test_once_the_person_has_saved_what_was_refused_can_be_applied(desk: Desk, tool: str) -> None:
    text = OLD.replace("six", "SIX, mine")
    desk.buffers = OneEditor(desk.folder, {"a.txt": text}, editable=False)
    await desk.call("read_file", path="a.txt")
    args = args_of(tool) | ({"content": NEW.replace("six", "SIX, mine")} if tool == "write_file" else {})
    refused = await desk.call(tool, **args)
    (desk.folder / "a.txt").write_text(text)
    desk.buffers = OneEditor(desk.folder, {"a.txt": text}, dirty=False)
    assert (await desk.resolve(refused, "merge")).status == "ok"
    assert (desk.folder / "a.txt").read_text() == NEW.replace("six", "SIX, mine")


async def test_a_clean_buffer_does_not_stand_in_the_way(desk: Desk) -> None:
    desk.buffers = OneEditor(desk.folder, {"a.txt": OLD}, dirty=False)
    assert (await desk.call("write_file", **args_of("write_file"))).status == "ok"
    assert (desk.folder / "a.txt").read_text() == NEW


async def test_text_that_becomes_dirty_while_the_permission_is_open_is_not_overwritten(desk: Desk) -> None:
    started = await desk.start("write_file", **args_of("write_file"))
    desk.buffers = OneEditor(desk.folder, {"a.txt": OLD + "mine"})
    started.ctx = desk.context("call_x")
    outcome = await desk.finish(started)
    assert [one.reason for one in outcome.conflicts] == ["dirty_buffer"]
    assert (desk.folder / "a.txt").read_text() == OLD


async def test_a_patch_that_fails_on_disk_gives_the_editor_its_text_back(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b\n")
    editor = OneEditor(tmp_path, {"a.txt": OLD})
    desk.buffers = editor
    patch = args_of("apply_patch")["patch"].replace(
        "*** End Patch", "*** Update File: b.txt\n@@\n-b\n+c\n*** End Patch"
    )
    started = await desk.start("apply_patch", patch=patch)
    (tmp_path / "b.txt").write_text("mine\n")
    outcome = await desk.finish(started)
    assert outcome.status == "error"
    assert (editor.texts, (tmp_path / "b.txt").read_text()) == ({"a.txt": OLD}, "mine\n")


async def test_undo_writes_through_no_link_that_came_to_stand_there_since(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    desk = Desk(tmp_path)
    done = await desk.call("edit_file", path="a", old_text="1\n", new_text="2\n")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").symlink_to("b")
    undone = await desk.undo(done)
    assert (undone.status, [one.path for one in undone.conflicts]) == ("error", ["a"])
    assert (tmp_path / "b").read_text() == "2\n"
    assert (tmp_path / "a").is_symlink()
