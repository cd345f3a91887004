"""Runs as work-done progress, and plain commands (design.md "Editor surface", "Commands")."""

from __future__ import annotations

from pathlib import Path

import pytest

from editor.desk import event, execute, number, session, start
from standfast.editor.doing import doing
from wire.raw import Raw

WORK = {"window": {"workDoneProgress": True}}


async def test_a_run_is_shown_as_progress_and_can_be_stopped_there(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize([tmp_path.as_uri()], capabilities=WORK)
    session_id = await session(raw, tmp_path)
    run_id = await start(raw, session_id, "/run sleep 60")
    asked = await raw.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    token = asked["params"]["token"]
    raw.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
    begun = await raw.told("$/progress")
    assert begun["token"] == token and begun["value"]["kind"] == "begin" and begun["value"]["cancellable"] is True
    await event(raw, "tool_started")
    now = await raw.told("$/progress", lambda p: p["value"]["kind"] == "report")
    assert now["value"]["message"] == "running sleep 60"
    raw.notify("window/workDoneProgress/cancel", {"token": token})
    assert (await event(raw, "run_finished", runId=run_id))["status"] == "cancelled"
    ended = await raw.told("$/progress", lambda p: p["value"]["kind"] == "end")
    assert ended["token"] == token


@pytest.mark.parametrize(
    ("tool", "args", "said"),
    [
        ("edit_file", {"path": "src/a.py", "old_text": "x"}, "editing src/a.py"),
        ("run_command", {"command": "make all\nmake check"}, "running make all"),
        ("run_command", {"command": "x" * 80}, "running " + "x" * 59 + "…"),
        ("apply_patch", {"patch": "*** Begin Patch"}, "applying a patch"),
        ("list_files", {}, "looking for files"),
        ("write_file", {"path": ["no", "text"]}, "writing"),
        ("process", {}, "a background command"),
        ("a_tool_of_another_agent", {"path": "a"}, "a_tool_of_another_agent"),
    ],
)
def test_what_a_run_does_is_said_in_a_few_words(tool: str, args: dict[str, object], said: str) -> None:
    assert doing(tool, args) == said


async def test_a_client_that_refuses_the_token_gets_no_progress(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize([tmp_path.as_uri()], capabilities=WORK)
    session_id = await session(raw, tmp_path)
    run_id = await start(raw, session_id, "hello")
    asked = await raw.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    raw.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "no"}})
    await event(raw, "run_finished", runId=run_id)
    await raw.ask("ping", "standfast/daemon/status")
    assert not [m for m in raw.heard if m.get("method") == "$/progress"]


async def test_a_token_of_nobody_stops_nothing(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize([tmp_path.as_uri()])
    session_id = await session(raw, tmp_path)
    for token in ("standfast/run_none", 5, "x"):
        raw.notify("window/workDoneProgress/cancel", {"token": token})
    run_id = await start(raw, session_id, "hello")
    assert (await event(raw, "run_finished", runId=run_id))["status"] == "succeeded"


async def test_an_ordinary_client_works_with_commands_alone(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize([tmp_path.as_uri()], ours=False)
    made = await execute(raw, "standfast.session.create", {"workspaceUri": tmp_path.as_uri(), "mode": "auto"})
    session_id = made["session"]["sessionId"]
    started = await execute(raw, "standfast.run.start", {"sessionId": session_id, "text": "/run sleep 60"})
    stopped = await execute(raw, "standfast.run.cancel", {"runId": started["runId"]})
    assert stopped["run"]["status"] == "cancelled"
    resumable = await raw.ask(number(), "standfast/run/list", {"sessionId": session_id})
    assert [run["runId"] for run in resumable["runs"]] == [started["runId"]]


async def test_the_transcript_is_a_document(raw: Raw, tmp_path: Path) -> None:
    result = await raw.initialize([tmp_path.as_uri()])
    assert result["capabilities"]["workspace"]["textDocumentContent"] == {"schemes": ["standfast"]}
    session_id = await session(raw, tmp_path)
    run_id = await start(raw, session_id, "what can you do?")
    await event(raw, "run_finished", runId=run_id)
    uri = f"standfast:/session/{session_id}"
    document = await raw.ask(number(), "workspace/textDocumentContent", {"uri": uri})
    assert "what can you do?" in document["text"]
    assert document["text"] == (await raw.ask(number(), "standfast/transcript/get", {"sessionId": session_id}))["text"]
    raw.request("none", "workspace/textDocumentContent", {"uri": "standfast:/session/ses_none"})
    assert (await raw.answer("none"))["error"]["code"] == -32602
