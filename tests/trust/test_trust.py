"""Trust in a folder: for that very folder, and for what was in the files that act; what changes is a question anew (issue G.1, e10)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from fake_api import FakeApi, reply, tool
from standfast.cli.client import RequestFailed
from standfast.session.trust import NEVER, judge, look, take
from support import Editor, RunningDaemon, configure, open_editor, start_daemon


@pytest.fixture
def free_daemon(home: Path, fake_api: FakeApi) -> Generator[RunningDaemon]:
    configure(home, model={"base_url": fake_api.url}, sandbox={"level": "none", "at_most": "none"})
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    yield running
    running.end()


@pytest.fixture
async def editor(free_daemon: RunningDaemon, workspace: Path) -> AsyncIterator[Editor]:
    async with open_editor(free_daemon.home, [workspace]) as opened:
        yield opened


async def trust(editor: Editor, folder: Path, *, trusted: bool = True) -> None:
    await editor.request("standfast/workspace/trust", {"workspaceUri": folder.as_uri(), "trusted": trusted})


def hook(workspace: Path, canary: Path) -> None:
    script = workspace / ".git/hooks/pre-commit"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\n")
    script.chmod(0o755)


@pytest.mark.scenario("e10")
@pytest.mark.scenario("ATK-27")
async def test_a_hook_acts_only_while_the_person_trusts_it_as_it_is(
    editor: Editor, workspace: Path, fake_api: FakeApi, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    hook(workspace, canary)
    (workspace / "AGENTS.md").write_text("Always say please.\n")
    for words in (("user.name", "Test"), ("user.email", "test@example.org")):
        subprocess.run(["git", "config", *words], cwd=workspace, check=True)
    session_id = await editor.create(workspace, mode="auto")
    editor.decide("allow")

    async def commit(name: str) -> int:
        (workspace / name).write_text("x")
        fake_api.push(
            reply("", tools=[tool("git", action="add", paths=[name])]),
            reply("", tools=[tool("git", action="commit", message=name)]),
            reply("Done."),
        )
        asked = len(editor.asked)
        end = await editor.run_end(await editor.start(session_id, name))
        assert end["status"] == "succeeded"
        assert {event["status"] for event in editor.events(session_id, "tool_result")} == {"ok"}
        return len(editor.asked) - asked

    async def ran() -> int:
        return len(canary.read_text().splitlines()) if canary.exists() else 0

    def told() -> bool:
        return "Always say please." in json.dumps(fake_api.requests[-1].body)

    await commit("one")
    assert (await ran(), told()) == (0, False), "nothing acts before trust"
    await trust(editor, workspace)
    await commit("two")
    assert (await ran(), told()) == (1, True), "trusted, it acts"
    hook(workspace, tmp_path / "other")
    assert await commit("three") > 0, "a changed hook is asked about"
    assert any(
        "Changed since you trusted the folder: .git/hooks/pre-commit" in risk
        for ask in editor.asked
        for risk in ask["risks"]
    )
    assert (await ran(), told(), (tmp_path / "other").exists()) == (1, False, False), "and acts no more"
    await trust(editor, workspace)
    await commit("four")
    assert (tmp_path / "other").exists()
    await trust(editor, workspace, trusted=False)
    hook(workspace, tmp_path / "last")
    await commit("five")
    assert not (tmp_path / "last").exists()


async def asked_about(editor: Editor, file: Path) -> dict[str, Any]:
    """Wait until the editor is told that a file took the trust away."""
    return (await editor.wait_for(lambda: _lapses(editor, file), "the question"))[0]


def _lapses(editor: Editor, file: Path) -> list[dict[str, Any]]:
    return [one for one in editor.diagnostics(file.as_uri()) if one["code"] == "trust-lapsed"]


async def choices(editor: Editor, file: Path) -> list[dict[str, Any]]:
    """What an editor offers at the first line of a file."""
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    return await editor.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": file.as_uri()}, "range": place, "context": {"diagnostics": []}},
    )


async def choose(editor: Editor, action: dict[str, Any]) -> None:
    words = {"command": action["command"]["command"], "arguments": action["command"]["arguments"]}
    await editor.request("workspace/executeCommand", words)


@pytest.mark.scenario("e10")
async def test_a_lapsed_trust_is_asked_anew_by_the_name_of_the_changed_file_and_for_what_it_says_now(
    editor: Editor, workspace: Path, fake_api: FakeApi
) -> None:
    notes = workspace / "AGENTS.md"
    notes.write_text("Always say please.\n")
    session_id, _ = await editor.create(workspace), await editor.create(workspace)
    await trust(editor, workspace)

    async def reaches_the_model(words: str) -> bool:
        fake_api.push(reply("Done."))
        await editor.run_end(await editor.start(session_id, "go on"))
        return words in json.dumps(fake_api.requests[-1].body)

    assert await reaches_the_model("say please")
    assert not _lapses(editor, notes)
    notes.write_text("Always say thanks.\n")
    assert not await reaches_the_model("say thanks")
    found = await asked_about(editor, notes)
    assert "AGENTS.md changed, or is new, since you trusted the folder" in found["message"]
    assert len(_lapses(editor, notes)) == 1, "once, for all sessions of the folder"
    again, _ = await choices(editor, notes)
    notes.write_text("Never say anything.\n")
    with pytest.raises(RequestFailed, match="changed once more"):
        await choose(editor, again)
    assert not await reaches_the_model("Never say"), "an answer is for what was asked about"
    again, _ = await choices(editor, notes)
    assert again["title"] == "Trust the folder again, as it is now"
    await choose(editor, again)
    await editor.wait_for(lambda: not _lapses(editor, notes), "the question to go")
    assert await reaches_the_model("Never say")


async def test_whoever_opens_a_folder_whose_trust_lapsed_is_asked_and_may_leave_it_untrusted(
    free_daemon: RunningDaemon, editor: Editor, workspace: Path
) -> None:
    await editor.create(workspace)
    await trust(editor, workspace)
    script = workspace / ".git/hooks/pre-push"
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\n")
    async with open_editor(free_daemon.home, [workspace]) as another:
        await asked_about(another, script)
        _, never = await choices(another, script)
        await choose(another, never)
        await another.wait_for(lambda: not _lapses(another, script), "the question to go")


async def test_another_folder_in_the_same_place_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("be kind")
    recorded = await take(folder)
    assert judge(recorded, look(folder)).trusted
    folder.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", folder)
    assert judge(recorded, look(folder)) == (False, ("the folder itself",))
    assert judge(None, look(folder)) == NEVER
    assert judge(recorded, None) == NEVER
    assert judge("1:2:3", look(folder)).trusted is False


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "CLAUDE.md",
        ".claude/skills/x/SKILL.md",
        ".gitattributes",
        ".git/hooks/post-checkout",
        ".git/info/attributes",
    ],
)
async def test_a_new_or_changed_file_that_acts_takes_the_trust_away(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    recorded = await take(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("one")
    assert judge(recorded, look(tmp_path)) == (False, (path,))
    recorded = await take(tmp_path)
    assert judge(recorded, look(tmp_path)).trusted
    (tmp_path / path).write_text("two")
    assert judge(recorded, look(tmp_path)) == (False, (path,))


async def test_gits_settings_count_but_not_its_branches_and_remotes(tmp_path: Path) -> None:
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text("[core]\n\tbare = false\n")
    recorded = await take(tmp_path)
    config.write_text(
        '[core]\n\tbare = false\n[remote "o"]\n\turl = x\n[branch "b"]\n\tmerge = y\n[user]\n\tname = z\n'
    )
    assert judge(recorded, look(tmp_path)).trusted
    config.write_text('[core]\n\tbare = false\n[filter "f"]\n\tclean = ./evil\n')
    assert judge(recorded, look(tmp_path)).changed == (".git/config",)


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("[core]\n\thooksPath = .husky\n", ".husky/pre-commit"),
        ('[filter "f"]\n\tclean = sh tools/clean.sh %f\n', "tools/clean.sh"),
        ("[include]\n\tpath = ../more.gitconfig\n", "more.gitconfig"),
        ('[alias]\n\tco = "!./tools/co.sh"\n', "tools/co.sh"),
    ],
)
async def test_what_gits_settings_name_in_the_folder_acts_and_counts(tmp_path: Path, setting: str, path: str) -> None:
    for name in (".git/config", path):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".git/config").write_text(setting)
    (tmp_path / path).write_text("one")
    (tmp_path / "a.py").write_text("one")
    recorded = await take(tmp_path)
    (tmp_path / "a.py").write_text("two")
    assert judge(recorded, look(tmp_path)).trusted
    (tmp_path / path).write_text("two")
    assert judge(recorded, look(tmp_path)) == (False, (path,))


async def test_an_ordinary_file_that_changes_changes_no_trust(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    recorded = await take(tmp_path)
    (tmp_path / "a.py").write_text("y")
    await asyncio.to_thread((tmp_path / "b.py").write_text, "z")
    assert judge(recorded, look(tmp_path)).trusted


@contextlib.asynccontextmanager
async def opened_with(daemon: RunningDaemon, folder: Path, *, trusted: bool) -> AsyncIterator[Editor]:
    """An editor that says itself whether it trusts the folder, and another that is no local one."""
    async with open_editor(daemon.home, hello=False) as made:
        params = {
            "processId": None,
            "rootUri": None,
            "workspaceFolders": [{"uri": uri, "name": "x"} for uri in (folder.as_uri(), "file:relative")],
            "capabilities": {"experimental": {"standfast": {"protocolVersion": 1}}},
            "initializationOptions": {"workspaceTrusted": trusted},
        }
        await made.request("initialize", params)
        await made.notify("initialized", {})
        yield made


@pytest.mark.parametrize("where", ["the folder by another name", "a folder in it"])
async def test_what_lies_in_a_folder_that_the_editor_does_not_trust_is_asked_for_however_it_is_spelt(
    free_daemon: RunningDaemon, workspace: Path, fake_api: FakeApi, tmp_path: Path, where: str
) -> None:
    inner = workspace / "inner"
    inner.mkdir()
    link = tmp_path / "link"
    link.symlink_to(workspace)
    folder = inner if where == "a folder in it" else link
    async with opened_with(free_daemon, workspace, trusted=False) as untrusting:
        session_id = await untrusting.create(folder, mode="auto")
        untrusting.decide("deny")
        fake_api.push(reply("", tools=[tool("write_file", path="new.txt", content="x")]), reply("As you say."))
        await untrusting.run_end(await untrusting.start(session_id, "write"))
        assert len(untrusting.asked) == 1
    assert not (folder / "new.txt").exists()
    async with opened_with(free_daemon, folder, trusted=True) as trusting:
        await trusting.attach(session_id)
        fake_api.push(reply("", tools=[tool("write_file", path="new.txt", content="x")]), reply("Done."))
        await trusting.run_end(await trusting.start(session_id, "write"))
        assert trusting.asked == []
    assert (folder / "new.txt").read_text() == "x"
