"""kill -9 at every event boundary (F1): the next daemon finds the truth, and the model's next request is accepted and names it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from crash import oracle
from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import ConnectionLost, RequestFailed
from support import RunningDaemon, configure, open_editor, start_daemon

OLD, NEW = "x = 1\n", "x = 2\n"

# The points that one run with one edit passes, found by running it: before and after each append, and the places around the effect.
APPENDS = 8
AROUND = ["before_effect@1", "before_exchange@1", "after_exchange@1", "after_effect@1", "before_result@1"]
EVERY_APPEND = [
    f"{name}@{n}" for name in ("before_append", "after_append", "after_publish") for n in range(1, APPENDS + 1)
]
EDIT_POINTS = [*EVERY_APPEND, *AROUND]
COMMAND_POINTS = ["before_effect@1", "in_spawn_before@1", "in_spawn_after@1", "after_effect@1", "before_result@1"]


def kill(point: str) -> str:
    name, _, n = point.partition("@")
    return f"{name}=kill@{n}"


def edits(request: Request) -> Answer:
    """The model changes one file when asked to fix it; to everything else it says a word."""
    if request.last_text == "fix it":
        return reply("I change it.", tools=[tool("edit_file", path="a.py", old_text="x = 1", new_text="x = 2")])
    return reply("Done.")


def runs(request: Request) -> Answer:
    if request.last_text == "fix it":
        return reply("I run it.", tools=[tool("run_command", command="echo x >> out.txt")])
    return reply("Done.")


async def _after(home: Path, workspace: Path, api: FakeApi, seen: oracle.Witness) -> list[oracle.Json]:
    """A new daemon: nothing runs by itself; then the person goes on, and all invariants hold. Returns the history."""
    asked = len(api.requests)
    daemon = start_daemon(home, oracle.environment_of(api))
    try:
        async with open_editor(home, [workspace]) as editor:
            listed = (await editor.request("standfast/session/list", {"workspaceUri": workspace.as_uri()}))["sessions"]
            if seen.session_id is None:
                assert len(listed) <= 1
                return []
            [session] = listed
            if "lastRun" in session:
                assert session["lastRun"]["status"] in oracle.TERMINAL
            attached = await editor.attach(seen.session_id)
            assert len(api.requests) == asked, "something reached the model before the person acted"
            assert attached["headSeq"] == attached["session"].get("headSeq", attached["headSeq"])
            run_id = await editor.start(seen.session_id, "go on")
            end = await editor.run_end(run_id)
            assert end["status"] == "succeeded", end
            assert not api.refused, api.refused
            stored = await oracle.history(editor, seen.session_id)
        oracle.check_log(seen, stored)
        oracle.check_runs(stored)
        oracle.check_calls(stored)
        assert oracle.leftovers(workspace) == []
        return stored
    finally:
        daemon.end()


@pytest.mark.requirement("R9.3")
@pytest.mark.parametrize("point", EDIT_POINTS)
async def test_an_edit_killed_at_any_boundary_is_known_for_what_it_is(home: Path, workspace: Path, point: str) -> None:
    with FakeApi(edits) as api:
        configure(home, model={"base_url": api.url})
        seen = await oracle.until_death(home, workspace, api, kill(point))
        assert seen.died, f"{point} was never reached: the matrix tests nothing there"
        found = (workspace / "a.py").read_text()
        assert found in (OLD, NEW), "torn"
        stored = await _after(home, workspace, api, seen)
        for verdict in oracle.check_calls(stored).values():
            if verdict is not None:
                assert verdict == ("applied" if found == NEW else "not_applied")
                assert verdict in api.requests[-1].whole_text
        assert (workspace / "a.py").read_text() == found


@pytest.mark.requirement("R12.2")
@pytest.mark.parametrize("point", COMMAND_POINTS)
async def test_a_command_killed_at_any_boundary_ran_once_or_never(home: Path, workspace: Path, point: str) -> None:
    with FakeApi(runs) as api:
        configure(home, model={"base_url": api.url})
        seen = await oracle.until_death(home, workspace, api, kill(point))
        assert seen.died, f"{point} was never reached"
        stored = await _after(home, workspace, api, seen)
    ran = (workspace / "out.txt").read_text() if (workspace / "out.txt").exists() else ""
    assert ran in ("", "x\n")
    [verdict] = oracle.check_calls(stored).values() or [None]
    assert verdict == ("finished" if ran else "not_applied")


async def test_a_crash_inside_recovery_changes_nothing_about_the_outcome(home: Path, workspace: Path) -> None:
    with FakeApi(edits) as api:
        configure(home, model={"base_url": api.url})
        seen = await oracle.until_death(home, workspace, api, kill("after_exchange@1"))
        points = (
            "in_recovery@1",
            "in_recovery@2",
            "before_append@1",
            "after_append@1",
            "before_append@2",
            "after_append@2",
        )
        died = 0
        for point in points:
            dying = start_or_die(home, api, kill(point))
            if dying is not None:
                async with open_editor(home, [workspace]) as editor:
                    with contextlib.suppress(ConnectionLost, RequestFailed):
                        await editor.attach(seen.session_id or "")
                died += await oracle.dies(dying)
                dying.kill()
            else:
                died += 1
        assert died >= 4
        stored = await _after(home, workspace, api, seen)
    verdicts = [event["status"] for event in oracle.of_type(stored, "tool_recovery")]
    assert verdicts == ["uncertain", "applied"]


def start_or_die(home: Path, api: FakeApi, failpoints: str) -> RunningDaemon | None:
    """A daemon that may die before it answers."""
    try:
        return start_daemon(home, oracle.environment_of(api, {"FAILPOINTS": failpoints}))
    except AssertionError:
        return None
