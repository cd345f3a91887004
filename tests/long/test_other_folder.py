"""Gone on with where another folder is open: a session works in its own, unless the person or their setting says otherwise (R2.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_api import FakeApi, reply, tool
from standfast.cli.client import Json
from support import Editor, configure, open_socket, start_daemon
from support.daemon import RunningDaemon

KEEP, MOVE = "Keep its folder", "Use the open folder"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    folder.mkdir()
    return folder


def listens(editor: Editor, title: str | None) -> list[Json]:
    """Answer the question for the folder with this title (None: close it); returns what is asked."""
    asked: list[Json] = []

    async def answer(question: Json) -> Json | None:
        asked.append(question)
        editor.news.set()
        return {"title": title} if title is not None else None

    editor.answer("window/showMessageRequest", answer)
    return asked


async def makes_a_file(editor: Editor, api: FakeApi, session_id: str, name: str = "made.txt") -> None:
    api.push(reply(tools=[tool("write_file", path=name, content="made")]), reply("Done."))
    end = await editor.run_end(await editor.start(session_id, "go"))
    assert end["status"] == "succeeded"


@pytest.mark.requirement("R2.2")
@pytest.mark.scenario("a29")
@pytest.mark.parametrize("title", [MOVE, None])
async def test_the_person_is_asked_once_and_their_answer_holds(
    editor: Editor, daemon: RunningDaemon, workspace: Path, other: Path, fake_api: FakeApi, title: str | None
) -> None:
    session_id = await editor.create(workspace)
    async with open_socket(daemon.home, [other]) as there:
        asked = listens(there, title)
        await there.attach(session_id)
        [question] = await there.wait_for(lambda: asked, "the question")
        assert str(workspace) in question["message"] and str(other) in question["message"]
        assert [action["title"] for action in question["actions"]] == [KEEP, MOVE]
        if title == MOVE:
            await there.event("session_rebound", workspaceUri=other.as_uri())
        await makes_a_file(there, fake_api, session_id)
        await there.attach(session_id)
        assert len(asked) == 1
    there_it_is, not_here = (other, workspace) if title == MOVE else (workspace, other)
    assert (there_it_is / "made.txt").exists() and not (not_here / "made.txt").exists()


async def test_an_editor_whose_folder_is_the_same_by_another_name_above_it_or_in_it_is_not_asked(
    editor: Editor, daemon: RunningDaemon, workspace: Path, tmp_path: Path
) -> None:
    session_id = await editor.create(workspace)
    (tmp_path / "link").symlink_to(workspace)
    (workspace / "src").mkdir()
    for folder in (workspace, tmp_path / "link", workspace.parent, workspace / "src"):
        async with open_socket(daemon.home, [folder]) as there:
            asked = listens(there, None)
            await there.attach(session_id)
            await there.request("standfast/session/list", {})
            assert asked == []


@pytest.mark.parametrize("folder", ["original", "current"])
async def test_a_setting_answers_for_the_person(
    home: Path, workspace: Path, other: Path, fake_api: FakeApi, folder: str
) -> None:
    configure(home, model={"base_url": fake_api.url}, session={"folder": folder})
    daemon = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    try:
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await makes_a_file(editor, fake_api, session_id, "first.txt")
        async with open_socket(home, [other]) as there:
            asked = listens(there, MOVE)
            attached = await there.attach(session_id)
            assert attached["session"]["workspaceUri"] == workspace.as_uri(), "looking moves nothing"
            await makes_a_file(there, fake_api, session_id)
            assert asked == []
        assert (other / "made.txt").exists() is (folder == "current")
        assert (workspace / "made.txt").exists() is (folder == "original")
    finally:
        daemon.end()
