"""Folders that move, are copied, replaced or spelled otherwise: the session goes with its folder, and only where the person says (R2)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from long_session import CheckingModel, Desk, Reply, open_desk

from standfast.errors import WorkspaceError
from standfast.session.views import SessionView
from standfast.session.workspace import same_path, to_path

WINDOW = 60_000
WHO = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")


def script(messages: list[dict[str, Any]]) -> Reply:
    """Reads x.txt and writes made.txt, by relative paths, when asked to work."""
    last = messages[-1]["content"]
    if last[-1]["type"] == "text" and last[-1]["text"].startswith("work"):
        return "On it.", [("read_file", {"path": "x.txt"}), ("write_file", {"path": "made.txt", "content": "made\n"})]
    return "Done.", []


def git(folder: Path, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True, env=env)


def project(folder: Path, *, repository: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "x.txt").write_text(f"1 of {folder.name}\n")
    if repository:
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"first of {folder.name}")
    return folder


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_desk(tmp_path, CheckingModel(script, WINDOW)) as opened:
        yield opened


async def session_in(desk: Desk, folder: Path) -> str:
    session_id = (await desk.sessions.create(folder.as_uri(), mode="auto")).row.session_id
    assert await desk.turn(session_id, "hello") == "succeeded"
    return session_id


async def listed(desk: Desk, folder: Path) -> list[SessionView]:
    views, _ = await desk.sessions.list(workspace_uri=folder.as_uri())
    return views


@pytest.mark.scenario("a20")
@pytest.mark.requirement("R2.3")
@pytest.mark.parametrize("repository", [True, False], ids=["repository", "plain folder"])
async def test_a_renamed_folder_is_recognised_offered_and_worked_in_once_it_is_rebound(
    desk: Desk, tmp_path: Path, repository: bool
) -> None:
    was = project(tmp_path / "proj-a", repository=repository)
    session_id = await session_in(desk, was)
    now = was.rename(tmp_path / "other" if not repository else tmp_path / "proj-b")
    [view] = await listed(desk, now)
    assert (view.row.session_id, view.workspace_state, view.candidate_uri) == (session_id, "moved", now.as_uri())
    with pytest.raises(WorkspaceError) as moved:
        await desk.say(session_id, "work")
    assert (moved.value.reason, moved.value.data["candidateUri"]) == ("WorkspaceMoved", now.as_uri())
    view = await desk.sessions.rebind(session_id, now.as_uri())
    assert (view.row.session_id, view.workspace_state) == (session_id, "present")
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (now / "made.txt").read_text() == "made\n"
    assert "1 of proj-a" in desk.model.bodies[-1].decode()
    assert not was.exists()


@pytest.mark.scenario("a23")
async def test_two_spellings_of_one_folder_are_one_workspace(desk: Desk, tmp_path: Path) -> None:
    real = project(tmp_path / "var" / "home" / "p")
    (tmp_path / "home").symlink_to(tmp_path / "var" / "home")
    spelled = tmp_path / "home" / "p"
    session_id = await session_in(desk, spelled)
    for asked in (real, spelled, tmp_path / "home" / ".." / "home" / "p"):
        [view] = await listed(desk, asked)
        assert (view.row.session_id, view.workspace_state) == (session_id, "present")
        assert view.row.workspace_uri == spelled.as_uri(), "as the person spelled it first"
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (real / "made.txt").exists()


@pytest.mark.scenario("a24")
async def test_a_session_of_another_worktree_is_listed_with_its_name_and_stays_there(
    desk: Desk, tmp_path: Path
) -> None:
    main = project(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "wt"))
    session_id = await session_in(desk, tmp_path / "wt")
    [view] = await listed(desk, main)
    assert (view.row.session_id, view.workspace_state, view.worktree) == (session_id, "present", "wt")
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (tmp_path / "wt" / "made.txt").exists()
    assert not (main / "made.txt").exists()


@pytest.mark.scenario("a26")
async def test_a_rename_of_case_only_is_a_move_like_any_other(desk: Desk, tmp_path: Path) -> None:
    was = project(tmp_path / "Proj")
    session_id = await session_in(desk, was)
    now = was.rename(tmp_path / "proj")
    [view] = await listed(desk, now)
    assert (view.row.session_id, view.workspace_state) == (session_id, "moved")
    await desk.sessions.rebind(session_id, now.as_uri())
    [view] = await listed(desk, now)
    assert view.workspace_state == "present"
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (now / "made.txt").exists()


@pytest.mark.scenario("a26")
@pytest.mark.parametrize(
    ("one", "other", "folds", "same"),
    [
        ("file:///c%3A/Proj", "file:///C:/Proj", False, True),
        ("file:///c%3A/Proj", "file:///C%3A/proj", False, False),
        ("file:///c%3A/Proj", "file:///C%3A/proj", True, True),
        ("file:///home/A", "file:///home/a", False, False),
    ],
)
def test_a_drives_letter_folds_and_the_rest_where_the_file_system_does(
    one: str, other: str, folds: bool, same: bool
) -> None:
    assert same_path(to_path(one), to_path(other), folds=folds) is same


@pytest.mark.scenario("a26")
async def test_a_session_is_listed_under_either_letter_of_its_drive(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_text(
        '{"type": "session_meta", "payload": {"id": "s", "cwd": "/c:/Proj"}}\n{"type": "user_message", "text": "hi"}\n'
    )
    session_id = (await desk.sessions.import_(file.as_uri())).row.session_id
    for asked in ("file:///C:/Proj", "file:///c%3A/Proj"):
        views, _ = await desk.sessions.list(workspace_uri=asked)
        assert [view.row.session_id for view in views] == [session_id]


async def test_a_copy_beside_the_original_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    was = project(tmp_path / "proj")
    session_id = await session_in(desk, was)
    copy = Path(shutil.copytree(was, tmp_path / "copy"))
    assert await listed(desk, copy) == []
    await desk.sessions.open_workspaces([copy.as_uri()])
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (was / "made.txt").exists()
    assert not (copy / "made.txt").exists()


async def test_with_a_copy_and_a_moved_original_both_are_offered_the_original_first(desk: Desk, tmp_path: Path) -> None:
    was = project(tmp_path / "proj")
    session_id = await session_in(desk, was)
    copy = Path(shutil.copytree(was, tmp_path / "copy"))
    now = was.rename(tmp_path / "moved")
    await desk.sessions.open_workspaces([copy.as_uri(), now.as_uri()])
    with pytest.raises(WorkspaceError) as moved:
        await desk.say(session_id, "work")
    assert moved.value.data["candidateUris"] == [now.as_uri(), copy.as_uri()]
    for folder in (copy, now):
        [view] = await listed(desk, folder)
        assert view.workspace_state == "moved"
    await desk.sessions.rebind(session_id, copy.as_uri())
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (copy / "made.txt").exists()
    assert not (now / "made.txt").exists()


@pytest.mark.requirement("R2.3")
async def test_another_folder_at_the_old_path_is_said_before_the_place_where_the_own_one_is(
    desk: Desk, tmp_path: Path
) -> None:
    folder = project(tmp_path / "proj", repository=False)
    session_id = await session_in(desk, folder)
    now = folder.rename(tmp_path / "moved")
    folder.mkdir()
    [view] = await listed(desk, folder)
    assert view.workspace_state == "replaced"
    with pytest.raises(WorkspaceError) as replaced:
        await desk.say(session_id, "work")
    assert (replaced.value.reason, replaced.value.data["candidateUri"]) == ("WorkspaceReplaced", now.as_uri())
    await desk.sessions.rebind(session_id, now.as_uri())
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (now / "made.txt").exists() and not list(folder.iterdir())


@pytest.mark.requirement("R2.2")
@pytest.mark.parametrize("repository", [True, False], ids=["repository", "plain folder"])
async def test_another_folder_at_the_old_path_has_to_be_confirmed(desk: Desk, tmp_path: Path, repository: bool) -> None:
    folder = project(tmp_path / "proj", repository=repository)
    session_id = await session_in(desk, folder)
    shutil.rmtree(folder)
    (tmp_path / "takes the inode").mkdir()
    folder.mkdir()
    (folder / "x.txt").write_text("another\n")
    [view] = await listed(desk, folder)
    assert view.workspace_state == "replaced"
    with pytest.raises(WorkspaceError) as replaced:
        await desk.say(session_id, "work")
    assert replaced.value.reason == "WorkspaceReplaced"
    assert list(folder.iterdir()) == [folder / "x.txt"]
    await desk.sessions.rebind(session_id, folder.as_uri())
    assert await desk.turn(session_id, "work") == "succeeded"
    assert (folder / "made.txt").exists()


@pytest.mark.requirement("R2.4")
async def test_a_folder_that_is_gone_says_so_is_not_made_again_and_the_history_can_be_read(
    desk: Desk, tmp_path: Path
) -> None:
    folder = project(tmp_path / "deep" / "proj", repository=False)
    session_id = await session_in(desk, folder)
    shutil.rmtree(folder)
    with pytest.raises(WorkspaceError) as gone:
        await desk.say(session_id, "work")
    assert gone.value.reason == "WorkspaceNotFound"
    attached = await desk.sessions.attach(session_id)
    assert attached.session.workspace_state == "missing"
    assert attached.events
    assert not folder.exists()
