"""A command's level is said everywhere; below the person's own every command is asked; wider permissions are asked (I13, F24)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_api import FakeApi, reply, tool
from fake_api.replies import Answer
from standfast.process import sandbox
from support import Editor, RunningDaemon, configure, open_editor, start_daemon
from support.waiting import until


def start(home: Path, api: FakeApi, **settings: object) -> RunningDaemon:
    configure(home, model={"base_url": api.url}, sandbox=settings)
    return start_daemon(home, {"ANTHROPIC_API_KEY": api.key})


def command(text: str, **more: object) -> tuple[Answer, Answer]:
    return reply("", tools=[tool("run_command", command=text, **more)]), reply("Done.")


def can(level: sandbox.Level) -> bool:
    exposure = sandbox.expose("/nonexistent", own=[])
    return sandbox.detect(exposure, best=level).level == level


async def level_of(editor: Editor) -> str:
    return (await editor.request("standfast/daemon/status", {}))["sandbox"]


@pytest.mark.requirement("I13")
async def test_the_best_level_is_used_unasked_and_is_in_the_handshake_the_status_and_each_started_call(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    running = start(home, fake_api)
    try:
        async with open_editor(home) as editor:
            level = await level_of(editor)
            best = next(word for word in reversed(sandbox.LEVELS) if word == "none" or can(word))
            assert level == best
            again = await open_and_greet(home)
            assert again == level
            session_id = await editor.create(workspace)
            fake_api.push(*command("echo hello"))
            await editor.run_end(await editor.start(session_id, "go"))
            assert [event["sandbox"] for event in editor.events(session_id, "tool_started")] == [level]
    finally:
        running.end()


async def open_and_greet(home: Path) -> str:
    async with open_editor(home, hello=False) as editor:
        greeted = await editor.request(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "capabilities": {"experimental": {"standfast": {"protocolVersion": 1}}},
            },
        )
        return greeted["capabilities"]["experimental"]["standfast"]["sandbox"]


@pytest.mark.scenario("ATK-31")
async def test_below_the_persons_level_every_command_is_asked_in_every_mode_and_each_time(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    running = start(home, fake_api, level="partial", at_most="none")
    try:
        async with open_editor(home, [workspace]) as editor:
            editor.decide("allowSession")
            session_id = await editor.create(workspace, mode="auto")
            degraded = (await editor.request("standfast/daemon/status", {}))["degraded"]
            assert [one["code"] for one in degraded] == ["SandboxMissing"]
            assert "every command is asked" in degraded[0]["message"]
            for _ in range(2):
                fake_api.push(*command("echo same"))
                await editor.run_end(await editor.start(session_id, "go"))
            assert [one["sandbox"] for one in editor.asked] == ["none", "none"]
            assert all("you want at least (`partial`)" in one["risks"][0] for one in editor.asked)
    finally:
        running.end()


async def test_who_switches_it_off_has_said_that_none_is_enough(home: Path, workspace: Path, fake_api: FakeApi) -> None:
    running = start(home, fake_api, at_most="none")
    try:
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="auto")
            fake_api.push(*command("echo same"))
            await editor.run_end(await editor.start(session_id, "go"))
            assert editor.asked == []
            assert (await editor.request("standfast/daemon/status", {}))["degraded"] == []
    finally:
        running.end()


@pytest.mark.scenario("ATK-40")
async def test_the_network_and_the_way_out_are_asked_each_time_as_risks_also_in_auto_mode(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    if not can("full"):
        pytest.skip("this machine cannot do full")
    running = start(home, fake_api, level="full")
    outside = workspace.parent / "made-outside"
    try:
        async with open_editor(home, [workspace]) as editor:
            editor.decide("allow")
            session_id = await editor.create(workspace, mode="auto")
            for text, more in (
                (f"touch {outside}; ls /sys/class 2>&1; exit 3", {}),
                ("true", {"network": True}),
                (f"touch {outside}", {"outside_sandbox": True}),
            ):
                fake_api.push(*command(text, **more))
                await editor.run_end(await editor.start(session_id, "go"))
                if not more:
                    assert not outside.exists()
            first = editor.events(session_id, "tool_result")[0]["content"]
            assert "outside_sandbox: true" in first
            assert "network: true" in first
            network, way_out = editor.asked
            assert (network["sandbox"], way_out["sandbox"]) == ("full", "none")
            assert "It gets the network" in network["risks"][0]
            assert "with the network" in network["summary"]
            assert "outside the sandbox" in way_out["risks"][0]
            assert [event["sandbox"] for event in editor.events(session_id, "tool_started")] == ["full", "full", "none"]
            assert outside.exists()
    finally:
        running.end()


@pytest.mark.requirement("F24")
def test_what_does_not_work_is_found_by_trying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bubblewrap that is there but fails (no user namespaces), or that is not root's own, is not believed."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    exposure = sandbox.expose(str(tmp_path), own=[])
    monkeypatch.setattr(sandbox.bubblewrap, "find_program", lambda: str(broken))
    found = sandbox.detect(exposure)
    assert found.level != "full"
    assert "No permissions to create new namespace" in found.why
    monkeypatch.undo()
    monkeypatch.setattr(sandbox.bubblewrap, "PROGRAMS", (str(broken),))
    broken.chmod(0o777)
    assert sandbox.bubblewrap.find_program() is None


async def test_stand_ins_are_in_the_workspace_only_while_a_command_runs(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    if not can("full"):
        pytest.skip("this machine cannot do full")
    for used in (".vscode-server", ".config/JetBrains"):
        (home / used).mkdir(parents=True)
    running = start(home, fake_api, level="full")
    try:
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="auto")
            fake_api.push(*command("touch begun; while [ ! -e on ]; do sleep 0.05; done"))
            run_id = await editor.start(session_id, "go")
            await until((workspace / "begun").exists, "the command to begin")
            assert (workspace / ".vscode").is_dir()
            (workspace / ".idea/mine").write_text("x")
            (workspace / "on").touch()
            await editor.run_end(run_id)
            assert sorted(path.name for path in workspace.iterdir() if path.name.startswith(".")) == [".git", ".idea"]
            assert (workspace / ".idea/mine").read_text() == "x"
    finally:
        running.end()
