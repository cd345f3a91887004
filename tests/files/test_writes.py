"""Writing: all files or none, modes and links kept, undo exact, nothing left behind (design.md "Files"; issue B.2, B.7)."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest
from files_desk import Desk, Started, lay_out, snapshot

from standfast.errors import NotAvailable, StandfastError
from standfast.files import kernel
from standfast.files.intents import FileIntent, file_intents

THREE = {name: {"text": f"{name}\n1\n"} for name in ("a", "b", "c")}
PATCH = "\n".join(
    ("*** Begin Patch", *(f"*** Update File: {name}\n@@\n {name}\n-1\n+2" for name in "abc"), "*** End Patch")
)
EVERYTHING = """*** Begin Patch
*** Update File: run.sh
@@
-echo 1
+echo 2
*** Add File: new/deep/x
+x
*** Delete File: old
*** Update File: from
*** Move to: to/there
@@
-1
+2
*** End Patch
"""


def lay_out_everything(folder: Path) -> None:
    lay_out(
        folder,
        {
            "run.sh": {"text": "echo 1\n", "mode": "0755"},
            "old": {"text": "old\n", "mode": "0600"},
            "from": {"text": "1", "mode": "0640"},
        },
    )


AFTER = {
    "run.sh": (b"echo 2\n", 0o755),
    "new/deep/x": (b"x\n", 0o644),
    "to/there": (b"2", 0o640),
}


async def test_one_patch_changes_adds_deletes_and_moves_and_undo_gives_all_back(tmp_path: Path) -> None:
    lay_out_everything(tmp_path)
    before = snapshot(tmp_path)
    desk = Desk(tmp_path)
    outcome = await desk.call("apply_patch", patch=EVERYTHING)
    assert snapshot(tmp_path) == AFTER
    assert [(one.kind, one.uri.rsplit("/", 1)[1]) for one in outcome.files] == [
        ("update", "run.sh"), ("add", "x"), ("delete", "old"), ("move", "there"),
    ]  # fmt: skip
    undone = await desk.undo(outcome)
    assert {name: one for name, one in snapshot(tmp_path).items() if one != "directory"} == before
    assert (await desk.undo(undone)).status == "ok"
    assert snapshot(tmp_path) == AFTER


@pytest.mark.requirement("R9.2")
async def test_the_intents_alone_tell_and_lead_both_ways(tmp_path: Path) -> None:
    lay_out_everything(tmp_path)
    before = snapshot(tmp_path)
    desk = Desk(tmp_path)
    started = await desk.start("apply_patch", patch=EVERYTHING)
    assert isinstance(started, Started)
    assert (await started.tool.verify(started.call, started.ctx)).verdict == "not_applied"
    completed = await started.tool.settle("complete", started.call, started.ctx)
    assert (completed.verdict, {target.verdict for target in completed.targets}) == ("applied", {"applied"})
    assert snapshot(tmp_path) == AFTER
    again = await started.tool.settle("complete", started.call, started.ctx)
    assert again.verdict == "applied"
    undone = await started.tool.settle("undo", started.call, started.ctx)
    assert (undone.verdict, snapshot(tmp_path)) == ("not_applied", before)
    with pytest.raises(NotAvailable):
        await started.tool.settle("stop", started.call, started.ctx)


@pytest.mark.scenario("c05")
@pytest.mark.parametrize("exchange", [True, False])
async def test_a_disk_that_fails_in_the_middle_leaves_nothing_changed(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(kernel, "_renameat2", lambda *args, **kwargs: False)
    lay_out(tmp_path, THREE)
    before = snapshot(tmp_path)

    def full(place: str) -> None:
        if place == "mid_effect":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("standfast.files.transaction.hit", full)
    outcome = await Desk(tmp_path).call("apply_patch", patch=PATCH)
    assert (outcome.status, outcome.reason) == ("error", "io_error")
    assert snapshot(tmp_path) == before


async def test_what_somebody_saved_over_a_file_in_the_middle_stays_when_the_rest_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, THREE)

    def save(place: str) -> None:
        if place == "mid_effect":
            (tmp_path / "saved").write_text("mine\n")
            (tmp_path / "saved").rename(tmp_path / "a")
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("standfast.files.transaction.hit", save)
    assert (await Desk(tmp_path).call("apply_patch", patch=PATCH)).status == "error"
    assert {name: data for name, (data, _) in snapshot(tmp_path).items()} == {
        "a": b"mine\n",
        "b": b"b\n1\n",
        "c": b"c\n1\n",
    }


async def test_a_cancelled_write_is_taken_back_before_the_cancellation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, THREE)
    before = snapshot(tmp_path)
    desk = Desk(tmp_path)
    started = await desk.start("apply_patch", patch=PATCH)
    loop = asyncio.get_running_loop()
    running: list[asyncio.Task[object]] = []

    def cancel(place: str) -> None:
        if place == "mid_effect":
            reached = asyncio.run_coroutine_threadsafe(stop(), loop)
            reached.result(10)

    async def stop() -> None:
        running[0].cancel()
        await asyncio.sleep(0)

    monkeypatch.setattr("standfast.files.transaction.hit", cancel)
    running.append(asyncio.ensure_future(desk.finish(started)))
    with pytest.raises(asyncio.CancelledError):
        await running[0]
    assert snapshot(tmp_path) == before


async def test_transactions_of_one_workspace_take_turns_by_whatever_path(tmp_path: Path) -> None:
    folder, other = tmp_path / "w", tmp_path / "link"
    folder.mkdir()
    other.symlink_to(folder)
    (folder / "n").write_text("0\n")
    desks = [Desk(folder), Desk(other)] * 10
    results = await asyncio.gather(
        *(
            desk.call("edit_file", path="n", old_text=f"{number}\n", new_text=f"{number + 1}\n")
            for number, desk in enumerate(desks)
        )
    )
    left = int((folder / "n").read_text())
    assert left == sum(result.status == "ok" for result in results)
    assert [path.name for path in folder.iterdir()] == ["n"]


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o4755, 0o664])
async def test_mode_bits_survive(mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "a").chmod(mode)
    assert (await Desk(tmp_path).call("edit_file", path="a", old_text="1", new_text="2")).status == "ok"
    assert (tmp_path / "a").stat().st_mode & 0o7777 == mode


async def test_extended_attributes_survive(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    try:
        os.setxattr(tmp_path / "a", "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    await Desk(tmp_path).call("edit_file", path="a", old_text="1", new_text="2")
    assert os.getxattr(tmp_path / "a", "user.note") == b"kept"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "1", "new_text": "2"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"}),
    ],
)
async def test_a_read_only_file_is_refused_even_to_root(tool: str, args: dict[str, str], tmp_path: Path) -> None:
    lay_out(tmp_path, {"a": {"text": "1\n", "mode": "0444"}})
    desk = Desk(tmp_path)
    await desk.call("read_file", path="a")
    outcome = await desk.call(tool, **({"path": "a"} | args if tool != "apply_patch" else args))
    assert (outcome.status, outcome.reason) == ("error", "read_only")
    assert snapshot(tmp_path) == {"a": (b"1\n", 0o444)}


async def test_crlf_bom_and_encoding_survive_whole_writes_and_edits(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    (tmp_path / "l").write_bytes(b"caf\xe9\nx = 1\n")
    desk = Desk(tmp_path)
    await desk.call("read_file", path="w")
    assert (await desk.call("write_file", path="w", content="a\nc\n")).status == "ok"
    assert (tmp_path / "w").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"
    assert (await desk.call("edit_file", path="w", old_text="a\nc\n", new_text="d\ne\nf\n")).status == "ok"
    assert (tmp_path / "w").read_bytes() == b"\xef\xbb\xbfd\r\ne\r\nf\r\n"
    assert (await desk.call("edit_file", path="l", old_text="x = 1", new_text="x = 2")).status == "ok"
    assert (tmp_path / "l").read_bytes() == b"caf\xe9\nx = 2\n"
    assert (await desk.call("edit_file", path="l", old_text="x = 2", new_text="x = é")).reason == "unsupported_encoding"
    assert (await desk.call("edit_file", path="l", old_text="caf", new_text="tea")).reason == "unsupported_encoding"
    assert (tmp_path / "l").read_bytes() == b"caf\xe9\nx = 2\n"


async def test_what_is_written_already_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    desk = Desk(tmp_path)
    await desk.call("read_file", path="a")
    inode = (tmp_path / "a").stat().st_ino
    outcome = await desk.call("write_file", path="a", content="1\n")
    assert (outcome.status, outcome.files) == ("ok", ())
    assert (tmp_path / "a").stat().st_ino == inode


async def test_a_change_of_case_only_is_a_move(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a\n")
    patch = "*** Begin Patch\n*** Update File: notes.txt\n*** Move to: Notes.txt\n@@\n-a\n+b\n*** End Patch"
    assert (await Desk(tmp_path).call("apply_patch", patch=patch)).status == "ok"
    assert snapshot(tmp_path) == {"Notes.txt": (b"b\n", 0o644)}


# -- undo -------------------------------------------------------------------------------------------------------------


async def test_undo_merges_into_what_the_person_did_since(tmp_path: Path) -> None:
    lay_out(tmp_path, {"a": {"text": "1\n2\n3\n4\n5\n6\n"}})
    desk = Desk(tmp_path)
    outcome = await desk.call("edit_file", path="a", old_text="1", new_text="ONE")
    (tmp_path / "a").write_text("ONE\n2\n3\n4\n5\nmine\n")
    undone = await desk.undo(outcome)
    assert undone.status == "ok"
    assert (tmp_path / "a").read_text() == "1\n2\n3\n4\n5\nmine\n"
    assert (await desk.undo(undone)).status == "ok"
    assert (tmp_path / "a").read_text() == "ONE\n2\n3\n4\n5\nmine\n"


async def test_undo_leaves_a_file_it_cannot_merge_and_says_so(tmp_path: Path) -> None:
    lay_out(tmp_path, THREE)
    desk = Desk(tmp_path)
    outcome = await desk.call("apply_patch", patch=PATCH)
    (tmp_path / "b").write_text("b\nmine\n")
    undone = await desk.undo(outcome)
    assert undone.status == "ok"
    assert [(one.path, one.reason) for one in undone.conflicts] == [("b", "FILE_CHANGED")]
    assert {name: data for name, (data, _) in snapshot(tmp_path).items()} == {
        "a": b"a\n1\n",
        "b": b"b\nmine\n",
        "c": b"c\n1\n",
    }


async def test_undo_of_a_run_takes_back_its_calls_from_the_last_to_the_first(tmp_path: Path) -> None:
    lay_out(tmp_path, {"a": {"text": "1\n"}})
    before = snapshot(tmp_path)
    desk = Desk(tmp_path)
    calls = [
        await desk.call("edit_file", path="a", old_text="1", new_text="2"),
        await desk.call("edit_file", path="a", old_text="2", new_text="3"),
        await desk.call(
            "apply_patch", patch="*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-3\n+4\n*** End Patch"
        ),
        await desk.call("write_file", path="a", content="other\n"),
    ]
    changes = [file.model_dump(by_alias=True) for call in reversed(calls) for file in reversed(call.files)]
    assert (await desk.call("undo", changes=changes)).status == "ok"
    assert snapshot(tmp_path) == before


# -- after a crash ----------------------------------------------------------------------------------------------------


async def torn(tmp_path: Path) -> tuple[Desk, Started, FileIntent]:
    """A started edit whose process is gone."""
    (tmp_path / "a").write_text("old\n")
    desk = Desk(tmp_path)
    started = await desk.start("edit_file", path="a", old_text="old", new_text="new")
    assert isinstance(started, Started)
    return desk, started, file_intents(started.call.intents)[0]


@pytest.mark.scenario("b02")
async def test_a_torn_temporary_file_is_swept(tmp_path: Path) -> None:
    _, started, intent = await torn(tmp_path)
    (tmp_path / intent.temp).write_text("ne")
    assert (await started.tool.verify(started.call, started.ctx)).verdict == "not_applied"
    assert snapshot(tmp_path) == {"a": (b"old\n", 0o644)}


async def test_a_temporary_name_with_foreign_content_is_never_swept(tmp_path: Path) -> None:
    _, started, intent = await torn(tmp_path)
    (tmp_path / intent.temp).write_text("somebody's\n")
    await started.tool.verify(started.call, started.ctx)
    assert (tmp_path / intent.temp).read_text() == "somebody's\n"


async def test_a_version_that_was_saved_in_the_moment_of_the_exchange_is_kept_and_undo_puts_it_back(
    tmp_path: Path,
) -> None:
    _, started, intent = await torn(tmp_path)
    (tmp_path / intent.temp).write_text("saved in the last moment\n")
    (tmp_path / "a").write_text("new\n")
    found = await started.tool.verify(started.call, started.ctx)
    assert found.verdict == "diverged"
    assert "very moment" in found.evidence
    settled = await started.tool.settle("undo", started.call, started.ctx)
    assert settled.verdict == "not_applied"
    assert snapshot(tmp_path) == {"a": (b"saved in the last moment\n", 0o644)}


@pytest.mark.parametrize("action", ["complete", "undo"])
async def test_where_one_file_holds_neither_side_none_is_touched(tmp_path: Path, action: str) -> None:
    lay_out(tmp_path, {"a": {"text": "1\n2\n3\n4\n5\n"}, "b": {"text": "b\n"}, "c": {"text": "c\n"}})
    desk = Desk(tmp_path)
    sections = "".join(
        f"*** Update File: {name}\n@@\n-{was}\n+ONE\n" for name, was in (("a", "1"), ("b", "b"), ("c", "c"))
    )
    started = await desk.start("apply_patch", patch=f"*** Begin Patch\n{sections}*** End Patch\n")
    (tmp_path / "a").write_text("ONE\n2\n3\n4\nmine\n")
    (tmp_path / "b").write_text("ONE\n")
    found = await started.tool.verify(started.call, started.ctx)
    assert found.verdict == "diverged"
    assert "nearer to what was to be written" in found.evidence and "line 5" in found.evidence
    there = snapshot(tmp_path)
    with pytest.raises(NotAvailable, match="a holds neither"):
        await started.tool.settle(action, started.call, started.ctx)
    assert snapshot(tmp_path) == there


async def test_a_touched_file_is_told(tmp_path: Path) -> None:
    _, started, _ = await torn(tmp_path)
    (tmp_path / "other").write_text("old\n")
    (tmp_path / "other").rename(tmp_path / "a")
    found = await started.tool.verify(started.call, started.ctx)
    assert found.verdict == "not_applied"
    assert "touched" in found.evidence


async def test_what_cannot_be_taken_back_is_an_error_and_not_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, THREE)
    desk = Desk(tmp_path)
    started = await desk.start("apply_patch", patch=PATCH)
    real = kernel.exchange
    calls = 0

    def breaks(fd: int, one: str, other: str) -> bool:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, one, other)

    monkeypatch.setattr(kernel, "exchange", breaks)
    with pytest.raises(StandfastError) as caught:
        await desk.finish(started)
    assert caught.value.reason == "RollbackFailed"
    monkeypatch.undo()
    found = await started.tool.verify(started.call, started.ctx)
    assert found.verdict == "partial"
    assert (await started.tool.settle("undo", started.call, started.ctx)).verdict == "not_applied"
    assert snapshot(tmp_path) == {name: (f"{name}\n1\n".encode(), 0o644) for name in "abc"}


# -- where the kernel has less ------------------------------------------------------------------------------------------


async def test_without_exchange_and_openat2_the_same_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_renameat2", lambda *args, **kwargs: False)
    monkeypatch.setattr(kernel, "open_beneath", lambda *args: None)
    lay_out_everything(tmp_path)
    (tmp_path / "link").symlink_to("..")
    desk = Desk(tmp_path)
    assert (await desk.call("apply_patch", patch=EVERYTHING)).status == "ok"
    (tmp_path / "link").unlink()
    assert snapshot(tmp_path) == AFTER
    (tmp_path / "to/there").write_text("mine")
    patch = "*** Begin Patch\n*** Add File: n\n+n\n*** Update File: to/there\n@@\n-2\n+3\n*** End Patch"
    assert (await desk.call("apply_patch", patch=patch)).reason == "PATCH_CONFLICT"
    assert not (tmp_path / "n").exists()
