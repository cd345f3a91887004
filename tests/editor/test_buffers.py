"""Unsaved text of several editors as the tools see it; an edit counts only once the editor's own report holds it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from editor.desk import change_document, do, event, number, open_document, session
from standfast.daemon.compose import Daemon
from standfast.editor.buffers import OpenBuffers
from standfast.files.buffers import BufferWrite
from wire.raw import Json, Raw, connect

CAN_EDIT = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
DISK = "one\ntwo\n"
DIRTY = "one\ntwo\nmine\n"
WANTED = "one\nTWO\nmine\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(DISK)
    return path


@pytest.fixture
async def window(parts: Daemon, file: Path) -> AsyncGenerator[Raw]:
    """An editor that can edit, with the file open and clean."""
    async with connect(parts) as raw:
        await raw.initialize([file.parent.as_uri()], capabilities=CAN_EDIT)
        open_document(raw, file.as_uri(), DISK)
        await seen(raw)
        yield raw


async def seen(raw: Raw) -> None:
    """Whatever was sent before is taken."""
    await raw.ask(number(), "standfast/daemon/status")


async def dirty(raw: Raw, file: Path, text: str = DIRTY, version: int = 5) -> None:
    change_document(raw, file.as_uri(), text, version)
    await seen(raw)


@contextlib.asynccontextmanager
async def writing(
    parts: Daemon, raw: Raw, file: Path, text: str = WANTED
) -> AsyncGenerator[tuple[asyncio.Task[BufferWrite], Json]]:
    """A write under way: the task, and the edit that the editor was asked for."""
    buffer = parts.core.buffers.get(file)
    assert buffer is not None
    task = asyncio.create_task(parts.core.buffers.write(buffer, text))
    try:
        yield task, await raw.until(lambda m: m.get("method") == "workspace/applyEdit")
    finally:
        task.cancel()


def answer(raw: Raw, request: Json, *, applied: bool) -> None:
    raw.send({"jsonrpc": "2.0", "id": request["id"], "result": {"applied": applied}})


async def outcome(task: asyncio.Task[BufferWrite]) -> BufferWrite:
    return await asyncio.wait_for(asyncio.shield(task), 20)


# -- what is dirty ----------------------------------------------------------------------------------------------------


async def test_a_clean_buffer_is_not_dirty_even_if_the_disk_moves_under_it(
    parts: Daemon, window: Raw, file: Path
) -> None:
    buffers: OpenBuffers = parts.core.buffers
    found = buffers.get(file)
    assert found is not None and not found.dirty and found.editable and found.text == DISK
    file.write_text("changed by the agent\n")
    found = buffers.get(file)
    assert found is not None and not found.dirty
    assert buffers.get(file.with_name("b.txt")) is None
    assert window


async def test_unsaved_text_is_dirty_until_it_is_saved_taken_back_or_closed(
    parts: Daemon, window: Raw, file: Path
) -> None:
    buffers, uri = parts.core.buffers, file.as_uri()

    async def is_dirty() -> bool:
        await seen(window)
        found = buffers.get(file)
        return found is not None and found.dirty

    change_document(window, uri, DIRTY, 2)
    assert await is_dirty()
    change_document(window, uri, DISK, 3)
    assert not await is_dirty()
    change_document(window, uri, DIRTY, 4)
    file.write_text(DIRTY)
    window.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert not await is_dirty()
    change_document(window, uri, DISK, 5)
    assert await is_dirty()
    window.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await seen(window)
    assert buffers.get(file) is None


async def test_a_buffer_that_is_opened_with_other_text_than_the_disks_is_unsaved(
    parts: Daemon, raw: Raw, file: Path
) -> None:
    await raw.initialize([file.parent.as_uri()], ours=False)
    open_document(raw, file.as_uri(), DIRTY)
    await seen(raw)
    found = parts.core.buffers.get(file)
    assert found is not None and found.dirty and not found.editable


async def test_a_file_is_found_through_a_link_to_its_folder(
    parts: Daemon, raw: Raw, file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    await raw.initialize([link.as_uri()])
    open_document(raw, (link / "a.txt").as_uri(), DIRTY)
    await seen(raw)
    found = parts.core.buffers.get(file)
    assert found is not None and found.dirty and found.uri == (link / "a.txt").as_uri()


async def test_two_windows_with_different_unsaved_text_are_disputed_and_the_newest_is_read(
    parts: Daemon, window: Raw, file: Path
) -> None:
    async with connect(parts) as other:
        await other.initialize([file.parent.as_uri()], capabilities=CAN_EDIT)
        open_document(other, file.as_uri(), DISK)
        await dirty(window, file, "first\n", 2)
        await seen(other)
        found = parts.core.buffers.get(file)
        assert found is not None and found.text == "first\n" and not found.disputed
        await dirty(other, file, "second\n", 2)
        found = parts.core.buffers.get(file)
        assert found is not None and found.text == "second\n" and found.disputed
    await other.served()
    found = parts.core.buffers.get(file)
    assert found is not None and found.text == "first\n" and not found.disputed


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("d01")
async def test_an_edit_names_its_version_touches_only_its_lines_and_counts_when_reported(
    parts: Daemon, window: Raw, file: Path
) -> None:
    await dirty(window, file)
    async with writing(parts, window, file) as (task, request):
        (change,) = request["params"]["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": file.as_uri(), "version": 5}
        assert change["edits"] == [
            {
                "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
                "newText": "TWO\n",
            }
        ]
        answer(window, request, applied=True)
        await seen(window)
        assert not task.done()
        change_document(window, file.as_uri(), WANTED, 6)
        assert await outcome(task) == BufferWrite("applied", WANTED)
    assert file.read_text() == DISK


async def test_a_report_before_the_answer_counts_too(parts: Daemon, window: Raw, file: Path) -> None:
    await dirty(window, file)
    async with writing(parts, window, file) as (task, _):
        change_document(window, file.as_uri(), WANTED, 6)
        assert (await outcome(task)).outcome == "applied"


async def test_what_the_person_typed_around_the_edit_is_no_contradiction(
    parts: Daemon, window: Raw, file: Path
) -> None:
    base = "".join(f"line {n}\n" for n in range(12))
    await dirty(window, file, base)
    wanted = base.replace("line 9", "line nine")
    typed = wanted.replace("line 1\n", "line 1 typed\n")
    async with writing(parts, window, file, wanted) as (task, request):
        answer(window, request, applied=True)
        change_document(window, file.as_uri(), typed, 6)
        assert await outcome(task) == BufferWrite("applied", typed)


@pytest.mark.scenario("d08")
async def test_an_editor_that_says_no_has_refused(parts: Daemon, window: Raw, file: Path) -> None:
    await dirty(window, file)
    async with writing(parts, window, file) as (task, request):
        change_document(window, file.as_uri(), DIRTY + "typed\n", 6)
        answer(window, request, applied=False)
        assert await outcome(task) == BufferWrite("refused", DIRTY + "typed\n")


@pytest.mark.requirement("R-RECOVER-20")
@pytest.mark.scenario("d08")
async def test_an_editor_that_says_yes_and_reports_other_text_is_not_believed(
    parts: Daemon, window: Raw, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.core.buffers, "_report_s", 0.05)
    await dirty(window, file)
    async with writing(parts, window, file) as (task, request):
        change_document(window, file.as_uri(), "banana\n", 6)
        answer(window, request, applied=True)
        assert await outcome(task) == BufferWrite("refused", "banana\n")


@pytest.mark.requirement("R-RECOVER-20")
async def test_an_editor_that_says_yes_and_reports_nothing_leaves_it_unknown(
    parts: Daemon, window: Raw, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.core.buffers, "_report_s", 0.05)
    await dirty(window, file)
    async with writing(parts, window, file) as (task, request):
        answer(window, request, applied=True)
        assert await outcome(task) == BufferWrite("unknown")
    edits = [m for m in window.heard if m.get("method") == "workspace/applyEdit"]
    assert len(edits) == 1


async def test_an_editor_that_leaves_leaves_it_unknown(parts: Daemon, window: Raw, file: Path) -> None:
    await dirty(window, file)
    async with writing(parts, window, file) as (task, _):
        await window.hang_up()
        assert await outcome(task) == BufferWrite("unknown")


async def test_a_buffer_that_moved_on_is_not_edited_at_all(parts: Daemon, window: Raw, file: Path) -> None:
    await dirty(window, file)
    buffer = parts.core.buffers.get(file)
    assert buffer is not None
    await dirty(window, file, "newer\n", 6)
    assert (await parts.core.buffers.write(buffer, WANTED)).outcome == "refused"
    assert not [m for m in window.heard if m.get("method") == "workspace/applyEdit"]


# -- through a run ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("d01")
async def test_the_agents_patch_reaches_the_unsaved_buffer_and_never_the_disk(window: Raw, file: Path) -> None:
    await dirty(window, file)
    session_id = await session(window, file.parent)
    patch = "/patch\n*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** End Patch"
    params = {"sessionId": session_id, "text": patch, "clientMessageId": number()}
    await window.ask(number(), "standfast/run/start", params)
    request = await window.until(lambda m: m.get("method") == "workspace/applyEdit")
    answer(window, request, applied=True)
    change_document(window, file.as_uri(), WANTED, 6)
    assert (await event(window, "tool_result"))["status"] == "ok"
    assert file.read_text() == DISK


async def test_a_client_that_cannot_edit_gets_a_conflict_and_keeps_its_text(raw: Raw, file: Path) -> None:
    await raw.initialize([file.parent.as_uri()])
    open_document(raw, file.as_uri(), DIRTY)
    session_id = await session(raw, file.parent)
    await do(raw, session_id, "/patch\n*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** End Patch")
    assert (await event(raw, "conflict_raised"))["reason"] == "dirty_buffer"
    assert file.read_text() == DISK
