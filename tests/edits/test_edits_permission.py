"""A permission holds for what it showed: if the file changes while the question is open, it is asked anew or becomes a conflict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from edits.scene import Scene, Stage, edit, patch, read, write
from fake_api import ToolUse
from standfast.cli.client import Json

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
HUNK = "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n"
CALLS: dict[str, ToolUse] = {
    "write_file": write("a.txt", OLD.replace("two", "TWO")),
    "edit_file": edit("a.txt", "two\n", "TWO\n"),
    "apply_patch": patch(HUNK),
}


@pytest.fixture
async def scene(stage: Stage, folder: Path) -> AsyncGenerator[Scene]:
    """In `ask` mode; questions are answered by `answer`."""
    async with stage.scene(folder, mode="ask") as found:
        yield found


class Answers:
    """Answers questions one by one, as the test says."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.waiting: asyncio.Queue[Json] = asyncio.Queue()
        scene.editor.answer("standfast/permission/request", self._asked)
        self.questions: list[Json] = []

    async def _asked(self, question: Json) -> Json:
        self.questions.append(question)
        self.scene.editor.news.set()
        decision = await self.waiting.get()
        self.scene.editor.news.set()
        return decision

    async def question(self, number: int) -> Json:
        """The question of that number (from 1), once it was asked."""
        await self.scene.editor.wait_for(lambda: len(self.questions) >= number, f"question {number}")
        return self.questions[number - 1]

    def give(self, decision: str, question: Json) -> None:
        self.waiting.put_nowait({"decision": decision, "digest": question["digest"]})


@pytest.mark.parametrize("name", ["edit_file", "apply_patch"])
async def test_a_change_elsewhere_asks_again_with_the_new_difference(scene: Scene, name: str) -> None:
    path, answers = scene.path(), Answers(scene)
    path.write_text(OLD)
    run_id = await scene.start([CALLS[name]])
    first = await answers.question(1)
    mine = "mine\nof mine\n" + OLD
    path.write_text(mine)
    answers.give("allow", first)
    second = await answers.question(2)
    assert second["callId"] == first["callId"] and second["digest"] != first["digest"]
    assert second["files"][0]["diff"] != first["files"][0]["diff"]
    assert "mine" in second["files"][0]["diff"]
    assert path.read_text() == mine, "nothing is written on the strength of the first answer"
    answers.give("allow", second)
    await scene.editor.run_end(run_id)
    assert path.read_text() == mine.replace("two", "TWO")
    assert len(answers.questions) == 2


@pytest.mark.parametrize("name", CALLS)
async def test_a_change_of_the_same_place_becomes_a_conflict(scene: Scene, name: str) -> None:
    path, answers = scene.path(), Answers(scene)
    path.write_text(OLD)
    run_id = await scene.start([read("a.txt")], [CALLS[name]])
    first = await answers.question(1)
    path.write_text(OLD.replace("two", "two, mine"))
    answers.give("allow", first)
    await scene.editor.run_end(run_id)
    assert path.read_text() == OLD.replace("two", "two, mine")
    assert len(answers.questions) == 1
    assert ("PATCH_CONFLICT" if name == "apply_patch" else "FILE_CHANGED") in scene.told()
    await scene.shown()


async def test_what_was_allowed_is_never_put_at_another_place(scene: Scene) -> None:
    """The patch fitted once; meanwhile its place was changed, and the same text stands elsewhere."""
    path, answers = scene.path(), Answers(scene)
    path.write_text("head\nif a:\n    x\nend\n")
    run_id = await scene.start([patch("*** Update File: a.txt\n@@\n if a:\n-    x\n+    y\n")])
    first = await answers.question(1)
    moved = "head\nif a:\n    z\nend\nother\nif a:\n    x\nend\n"
    path.write_text(moved)
    answers.give("allow", first)
    second = await answers.question(2)
    assert path.read_text() == moved
    answers.give("deny", second)
    await scene.editor.run_end(run_id)
    assert path.read_text() == moved
    assert "Denied" in scene.told()


async def test_an_answer_to_an_older_question_decides_nothing(scene: Scene) -> None:
    path, answers = scene.path(), Answers(scene)
    path.write_text(OLD)
    run_id = await scene.start([CALLS["edit_file"]])
    first = await answers.question(1)
    mine = "mine\n" + OLD
    path.write_text(mine)
    answers.give("allow", first)
    second = await answers.question(2)
    answers.give("allow", first)
    await scene.editor.wait_for(answers.waiting.empty, "the answer to be taken")
    await scene.editor.request("standfast/daemon/status", {})
    assert path.read_text() == mine
    assert not scene.editor.events(type_="tool_started")
    await scene.editor.attach(scene.session_id)
    again = await answers.question(3)
    assert again["digest"] == second["digest"], "it is still open"
    answers.give("allow", again)
    await scene.editor.run_end(run_id)
    assert path.read_text() == mine.replace("two", "TWO")


async def test_an_unchanged_file_is_asked_for_once_and_written_once(scene: Scene) -> None:
    path, answers = scene.path(), Answers(scene)
    path.write_text(OLD)
    run_id = await scene.start([CALLS["apply_patch"]])
    first = await answers.question(1)
    answers.give("allow", first)
    await scene.editor.run_end(run_id)
    assert path.read_text() == OLD.replace("two", "TWO")
    assert len(answers.questions) == 1
    started = await scene.editor.event("tool_started")
    assert started["callId"] == first["callId"]


@pytest.mark.scenario("ATK-18")
@pytest.mark.scenario("ATK-19")
@pytest.mark.scenario("e09")
@pytest.mark.parametrize(
    "name", [".vscode/settings.json", ".VSCODE/tasks.json", ".husky/pre-commit", ".mcp.json", "sub/.envrc", ".nvim.lua"]
)
async def test_a_file_that_starts_programs_is_asked_for_by_name_even_in_auto_mode(
    stage: Stage, folder: Path, name: str
) -> None:
    async with stage.scene(folder, mode="auto") as scene:
        answers = Answers(scene)
        run_id = await scene.start([write(name, "{}\n")])
        question = await answers.question(1)
        assert any(name in risk for risk in question["risks"])
        assert not scene.path(name).exists()
        answers.give("deny", question)
        await scene.editor.run_end(run_id)
        assert list(folder.iterdir()) == []


@pytest.mark.scenario("e06")
@pytest.mark.scenario("e09")
@pytest.mark.scenario("ATK-09")
@pytest.mark.scenario("ATK-10")
@pytest.mark.scenario("ATK-15")
async def test_what_lies_outside_or_in_git_is_refused_and_is_no_conflict(stage: Stage, folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("SECRET\n")
    (folder / "link").symlink_to(outside)
    (folder / "vendor" / ".git" / "hooks").mkdir(parents=True)
    names = [
        "link/f", "link/new", "../outside/f", str(outside / "f"), ".git/hooks/pre-commit", "vendor/.git/hooks/x", ".GIT/config",
        ".g\u200cit/config", "a\x00b",
    ]  # fmt: skip
    async with stage.scene(folder, mode="auto") as scene:
        await scene.run([write(name, "evil\n") for name in names], [edit("link/f", "SECRET", "evil")])
        results = scene.editor.events(type_="tool_result")
        assert [result["status"] for result in results] == ["error"] * (len(names) + 1)
        assert not scene.editor.events(type_="conflict_raised")
        assert not scene.editor.events(type_="tool_started")
    assert [one.name for one in outside.iterdir()] == ["f"] and (outside / "f").read_text() == "SECRET\n"
    assert not list((folder / "vendor" / ".git" / "hooks").iterdir()) and not (folder / ".git").exists()
