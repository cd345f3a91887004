"""What the model last saw outlives the daemon, and a save in the very moment of a write outlives the write (R11; issue B, 2 and 3)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from edits.scene import Model, Scene, Stage, edit, patch, read, write
from fake_api import FakeApi, ToolUse
from standfast.cli.client import ConnectionLost
from support import RunningDaemon, configure, open_socket, start_daemon

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
NEW = OLD.replace("two", "TWO")
MINE = OLD.replace("six", "six, mine")
CALLS: dict[str, ToolUse] = {
    "write_file": write("a.txt", NEW),
    "edit_file": edit("a.txt", "two\n", "TWO\n"),
    "apply_patch": patch("*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n"),
}


@contextlib.asynccontextmanager
async def staged(home: Path, **env: str) -> AsyncGenerator[Stage]:
    """A daemon of the test's own, with failpoints perhaps."""
    model = Model()
    with FakeApi(model.answer) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, {"ANTHROPIC_API_KEY": api.key, **env})
        yield Stage(daemon, model, api)


async def again(stage: Stage) -> None:
    """Kill the daemon, and start another on the same store."""
    stage.daemon.kill()
    stage.daemon = start_daemon(stage.daemon.home, {"ANTHROPIC_API_KEY": stage.api.key})


@contextlib.asynccontextmanager
async def back(stage: Stage, before: Scene) -> AsyncGenerator[Scene]:
    """The same session in an editor that is opened anew."""
    async with open_socket(stage.daemon.home, [before.folder]) as editor:
        await editor.attach(before.session_id)
        yield Scene(editor, before.folder, before.session_id, before.tag, before.model)


@pytest.mark.requirement("R11.2")
async def test_what_the_model_saw_its_conflicts_and_their_ways_out_outlive_the_daemon(home: Path, folder: Path) -> None:
    (folder / "a.txt").write_text(OLD)
    (folder / "b.txt").write_text(OLD)
    async with staged(home) as stage:
        async with stage.scene(folder) as first:
            await first.run([read("a.txt"), read("b.txt")])
            await again(stage)
        (folder / "a.txt").write_text(MINE)
        os.utime(folder / "b.txt", (1, 1))
        async with back(stage, first) as second:
            await second.run([write("b.txt", NEW)], [write("a.txt", NEW)])
            assert (folder / "b.txt").read_text() == NEW, "unchanged, so it needs no other read"
            assert "FILE_CHANGED" in second.told() and MINE in second.told()
            assert (folder / "a.txt").read_text() == MINE
            await again(stage)
        async with back(stage, first) as third:
            assert (await third.shown())["code"] == "file-changed"
            await third.act("Apply merged: keep both changes")
            assert (folder / "a.txt").read_text() == MINE.replace("two", "TWO")
            await third.clear()
        assert not stage.api.refused


# -- the very moment of the write -------------------------------------------------------------------------------------


def by_a_new_file(path: Path) -> None:
    """As most editors save."""
    path.with_name("saved").write_text(MINE)
    path.with_name("saved").rename(path)


def in_place(path: Path) -> None:
    path.write_text(MINE)


async def meanwhile(daemon: RunningDaemon, act: Callable[[], None]) -> None:
    """Once the daemon stands at its failpoint, do this, and let it go on."""
    await asyncio.to_thread(os.waitid, os.P_PID, daemon.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    try:
        act()
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


WAYS: list[tuple[str, Callable[[Path], None]]] = [*((name, by_a_new_file) for name in CALLS), ("apply_patch", in_place)]


@pytest.mark.requirement("R11.4")
async def test_a_save_in_the_very_moment_of_the_write_wins(home: Path, tmp_path: Path) -> None:
    """Each write is stopped right before its exchange; the merges in between are not."""
    async with staged(home, FAILPOINTS="before_exchange=stop@1,3,5,7") as stage:
        for number, (name, save) in enumerate(WAYS):
            folder = tmp_path / f"project{number}"
            folder.mkdir()
            await _save_wins(stage, folder, name, save)


async def _save_wins(stage: Stage, folder: Path, name: str, save: Callable[[Path], None]) -> None:
    path = folder / "a.txt"
    path.write_text(OLD)
    async with stage.scene(folder) as scene:
        run_id = await scene.start([read("a.txt")], [CALLS[name]])
        await meanwhile(stage.daemon, lambda: save(path))
        await scene.editor.run_end(run_id)
        assert {one.name: one.read_text() for one in folder.iterdir()} == {"a.txt": MINE}
        assert ("PATCH_CONFLICT" if name == "apply_patch" else "FILE_CHANGED") in scene.told()
        assert MINE in scene.told()
        diagnostic = await scene.shown()
        assert diagnostic["code"] == ("patch-conflict" if name == "apply_patch" else "file-changed")
        assert diagnostic["range"]["start"]["line"] == 5, "where the person saved something else"
        await scene.act("Apply merged: keep both changes")
        assert path.read_text() == MINE.replace("two", "TWO")
        await scene.clear()


async def test_a_save_right_after_the_write_is_the_newest_and_stays(home: Path, tmp_path: Path) -> None:
    async with staged(home, FAILPOINTS="after_exchange=stop@1,2") as stage:
        for save in (by_a_new_file, in_place):
            path = tmp_path / save.__name__ / "a.txt"
            path.parent.mkdir()
            path.write_text(OLD)
            async with stage.scene(path.parent) as scene:
                run_id = await scene.start([read("a.txt")], [write("a.txt", NEW)], [write("a.txt", "later\n")])
                await meanwhile(stage.daemon, lambda path=path, save=save: save(path))
                await scene.editor.run_end(run_id)
                assert {one.name: one.read_text() for one in path.parent.iterdir()} == {"a.txt": MINE}
                assert "FILE_CHANGED" in scene.told(), "the next write sees it"


async def test_an_undo_that_died_right_after_it_took_a_file_away_leaves_no_directory_behind(
    home: Path, folder: Path
) -> None:
    async with staged(home, FAILPOINTS="after_exchange=kill@2") as stage:
        async with stage.scene(folder) as first:
            run_id = await first.run([write("new/deep/b.txt", "b\n")])
            with pytest.raises(ConnectionLost):
                await first.editor.request("standfast/run/undo", {"runId": run_id})
        await stage.daemon.exited()
        await again(stage)
        async with open_socket(stage.daemon.home, [folder]) as editor:
            attached = await editor.attach(first.session_id)
            (call,) = attached["recovery"]["calls"]
            assert (call["tool"], call["verdict"]) == ("undo", "applied")
        assert list(folder.iterdir()) == []
