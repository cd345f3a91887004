"""Other agents' session files, as the real programs wrote them: taken in over the wire, shown, gone on with (R3.6, issue F.7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fake_api import FakeApi, reply
from standfast.cli.client import Json, RequestFailed
from support import Editor

DATA = Path(__file__).parent / "data"
CODEX = sorted((DATA / "codex").glob("*.jsonl"))
CLAUDE_CODE = sorted((DATA / "claude_code").glob("*.jsonl"))
PI = sorted((DATA / "pi").glob("*.jsonl"))
FILES = [*CODEX, *CLAUDE_CODE, *PI]


def at_home(file: Path, place: Path, folder: Path) -> Path:
    """A copy of a sample whose session worked in this test's folder. The bytes are the program's, but for the path."""
    copy = place / file.name
    text = file.read_text()
    for was in ("/srv/dev/project", "/srv/dev/other"):
        text = text.replace(was, str(folder))
    copy.write_text(text)
    return copy


async def take_in(desk: Editor, file: Path) -> Json:
    return (await desk.request("standfast/session/import", {"uri": file.as_uri()}))["session"]


async def events_of(desk: Editor, session_id: str) -> list[Json]:
    return (await desk.request("standfast/session/events", {"sessionId": session_id, "afterSeq": 0, "limit": 1000}))[
        "events"
    ]


def calls_in(events: list[Json]) -> list[tuple[str, str | None]]:
    """Each call's tool, and the status of its result."""
    results = {event["callId"]: event["status"] for event in events if event["type"] == "tool_result"}
    return [(event["tool"], results.get(event["callId"])) for event in events if event["type"] == "tool_call"]


@pytest.mark.requirement("R3.6")
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_a_file_is_taken_in_once_bound_to_its_folder_shown_and_gone_on_with(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path, file: Path
) -> None:
    session = await take_in(desk, at_home(file, tmp_path, workspace))
    assert session["workspaceUri"] == workspace.as_uri()
    assert session["workspaceState"] == "present"
    assert session["title"]
    assert (await take_in(desk, tmp_path / file.name))["sessionId"] == session["sessionId"]
    events = await events_of(desk, session["sessionId"])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    said = [event["content"][0]["text"] for event in events if event["type"] == "user_message"]
    assert said
    assert not any("environment_context" in text for text in said)
    shown = (await desk.request("standfast/transcript/get", {"sessionId": session["sessionId"]}))["text"]
    assert all(text in shown for text in said)
    await desk.attach(session["sessionId"])
    module_api.push(reply("Going on."))
    end = await desk.run_end(await desk.start(session["sessionId"], "and now?"))
    assert end["status"] == "succeeded", end
    assert not module_api.refused
    sent = json.dumps(module_api.requests[-1].body["messages"], ensure_ascii=False)
    assert all(json.dumps(text, ensure_ascii=False)[1:-1] in sent for text in said)


@pytest.mark.parametrize(
    ("file", "calls"),
    [
        ("codex/rollout-2026-11-29T15-00-00-probe.jsonl", [("run_command", "ok"), ("apply_patch", "ok")]),
        ("codex/rollout-2026-11-29T15-00-00-kill_ii_nested_cmd.jsonl", [("run_command", None)]),
        ("codex/rollout-2026-11-29T15-00-00-kill_i_immediate_patch.jsonl", []),
        ("claude_code/file_edited_by_person.jsonl", [("read_file", "ok"), ("write_file", "error")]),
        ("claude_code/killed_in_command.jsonl", [("run_command", None)]),
        ("claude_code/moved_folder.jsonl", [("read_file", "denied")]),
        ("pi/killed_in_command.jsonl", [("run_command", None)]),
        ("pi/file_edited_by_person.jsonl", [("read_file", "ok"), ("write_file", "ok")]),
        ("pi/ten_tools.jsonl", [("run_command", "ok")] * 10),
    ],
)
async def test_calls_and_their_results_are_told_in_our_words(
    desk: Editor, workspace: Path, tmp_path: Path, file: str, calls: list[tuple[str, str | None]]
) -> None:
    session = await take_in(desk, at_home(DATA / file, tmp_path, workspace))
    events = await events_of(desk, session["sessionId"])
    assert calls_in(events)[: max(len(calls), 1)] == calls


async def test_edits_are_there_with_their_difference(desk: Editor, workspace: Path, tmp_path: Path) -> None:
    session = await take_in(desk, at_home(CODEX[-1], tmp_path, workspace))
    results = [event for event in await events_of(desk, session["sessionId"]) if event["type"] == "tool_result"]
    [changed] = [file for result in results for file in result.get("files", [])]
    assert changed["uri"] == (workspace / "a.txt").as_uri()
    assert changed["kind"] == "update"
    assert "-hi\n+bye" in changed["diff"]


@pytest.mark.requirement("R9.1")
@pytest.mark.parametrize(
    "file", ["codex/rollout-2026-11-29T15-00-00-kill_ii_nested_cmd.jsonl", "pi/killed_in_command.jsonl"]
)
async def test_a_call_that_has_no_result_is_uncertain_and_nobody_pretends_to_know(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path, file: str
) -> None:
    session = await take_in(desk, at_home(DATA / file, tmp_path, workspace))
    attached = await desk.attach(session["sessionId"])
    [call] = attached["recovery"]["calls"]
    assert (call["verdict"], call["tool"]) == ("unknown", "run_command")
    again = await desk.attach(session["sessionId"])
    assert again["headSeq"] == attached["headSeq"], "looking at it changes nothing"
    for action in ("complete", "undo", "stop"):
        with pytest.raises(RequestFailed) as refused:
            await desk.request("standfast/recovery/resolve", {"callId": call["callId"], "action": action})
        assert refused.value.reason == "ActionNotAvailable"
    module_api.push(reply("I see."))
    await desk.run_end(await desk.start(session["sessionId"], "what happened?"))
    told = json.dumps(module_api.requests[-1].body["messages"])
    assert "unknown" in told
    assert not module_api.refused
    await desk.request("standfast/recovery/resolve", {"callId": call["callId"], "action": "keep"})


async def test_a_plan_that_the_file_has_is_the_sessions_plan(desk: Editor, workspace: Path, tmp_path: Path) -> None:
    plan = {
        "explanation": "the way",
        "plan": [{"step": "look", "status": "completed"}, {"step": "do", "status": "pending"}],
    }
    lines = [
        {"type": "session_meta", "timestamp": "2026-11-29T15:00:00Z", "payload": {"id": "s", "cwd": str(workspace)}},
        item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "plan it"}]}),
        item({"type": "function_call", "name": "update_plan", "call_id": "c1", "arguments": json.dumps(plan)}),
        item({"type": "function_call_output", "call_id": "c1", "output": "Plan updated"}),
    ]
    file = tmp_path / "rollout-plan.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = await take_in(desk, file)
    [planned] = [event for event in await events_of(desk, session["sessionId"]) if event["type"] == "plan_updated"]
    assert planned["goal"] == "the way"
    assert planned["steps"] == [{"text": "look", "status": "completed"}, {"text": "do", "status": "pending"}]


def item(payload: Json) -> Json:
    return {"type": "response_item", "timestamp": "2026-11-29T15:00:01Z", "payload": payload}


async def test_a_tool_that_we_do_not_have_is_told_in_words_and_the_request_is_valid(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path
) -> None:
    lines = [
        {"type": "session_meta", "timestamp": "2026-11-29T15:00:00Z", "payload": {"id": "w", "cwd": str(workspace)}},
        item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look it up"}]}),
        item({"type": "function_call", "name": "mcp__web.search", "call_id": "c1", "arguments": '{"q": "weather"}'}),
        item({"type": "function_call", "name": "exec_command", "call_id": "c2", "arguments": '{"cmd": "date"}'}),
        item({"type": "function_call_output", "call_id": "c1", "output": "sunny"}),
        item({"type": "function_call_output", "call_id": "c2", "output": "today"}),
    ]
    file = tmp_path / "rollout-web.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = await take_in(desk, file)
    await desk.attach(session["sessionId"])
    module_api.push(reply("So."))
    end = await desk.run_end(await desk.start(session["sessionId"], "well?"))
    assert end["status"] == "succeeded"
    sent = json.dumps(module_api.requests[-1].body["messages"])
    assert "mcp__web.search" in sent and "sunny" in sent and "today" in sent
    assert not module_api.refused


# -- damaged files ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("a08")
async def test_a_file_whose_last_line_was_cut_is_taken_in_as_far_as_it_is_whole(
    desk: Editor, workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes((DATA / "damaged" / "a08_truncated_tail.jsonl").read_bytes().replace(b"/w/p", bytes(workspace)))
    before = file.read_bytes()
    whole = before.rindex(b"\n") + 1
    session = await take_in(desk, file)
    events = await events_of(desk, session["sessionId"])
    said = [event["content"][0]["text"] for event in events if event["type"] == "user_message"]
    assert said == [f"m{n}" for n in range(1, len(said) + 1)]
    assert len(said) == before.count(b'"type": "user_message"') - before[whole:].count(b'"type": "user_message"')
    attached = await desk.attach(session["sessionId"])
    assert f"offset {whole}" in attached["damage"]["reason"]
    assert file.read_bytes() == before

    def shown() -> list[Json]:
        published = [d for told in desk.told("textDocument/publishDiagnostics") for d in told["diagnostics"]]
        return [d for d in published if d["code"] == "history-damaged" and str(whole) in d["message"]]

    await desk.wait_for(shown, "the warning")


@pytest.mark.scenario("a09")
@pytest.mark.scenario("a10")
@pytest.mark.parametrize("hurt", ["nul", "fused"])
async def test_what_lies_behind_a_hurt_place_is_there_and_is_told_to_the_model(
    desk: Editor, module_api: FakeApi, workspace: Path, tmp_path: Path, hurt: str
) -> None:
    lines = CODEX[-1].read_text().replace("/srv/dev/project", str(workspace)).splitlines()
    second = json.dumps(
        item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "second"}]})
    )
    third = json.dumps(item({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "third"}]}))
    between = "\0" * 400 if hurt == "nul" else '{"type": "response_item", "payload": {"type": "mess'
    text = "\n".join(lines) + "\n" + between + second + "\n" + third + "\n"
    file = tmp_path / f"{hurt}.jsonl"
    file.write_text(text)
    session = await take_in(desk, file)
    attached = await desk.attach(session["sessionId"])
    assert f"offset {text.encode().index(between.encode())}" in attached["damage"]["reason"]
    module_api.push(reply("Yes."))
    await desk.run_end(await desk.start(session["sessionId"], "fourth"))
    sent = json.dumps(module_api.requests[-1].body["messages"])
    assert sent.index("second") < sent.index("third") < sent.index("fourth")
    assert not module_api.refused


@pytest.mark.parametrize("name", ["a09b_all_nul.json", "nothing.jsonl", "other.jsonl"])
async def test_a_file_of_another_kind_is_refused_and_leaves_nothing(desk: Editor, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    kept = DATA / "damaged" / name
    file.write_bytes(kept.read_bytes() if kept.exists() else b'{"a": 1}\n' if name == "other.jsonl" else b"")
    with pytest.raises(RequestFailed) as refused:
        await take_in(desk, file)
    assert refused.value.reason == "ImportFailed"
