"""Diagnostics and code actions as an ordinary LSP client sees them, over real sessions and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from editor.desk import (
    AMBIGUOUS,
    TEXT,
    change_document,
    code_actions,
    conflict,
    diagnostics,
    do,
    event,
    execute,
    number,
    open_document,
    place,
    session,
)
from standfast.daemon.compose import Daemon
from wire.raw import Raw, connect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my dir"
    made.mkdir()
    return made


@pytest.mark.requirement("R-RECOVER-17")
async def test_a_refused_patch_is_a_warning_on_its_line_in_every_window_that_has_the_folder(
    parts: Daemon, raw: Raw, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with connect(parts) as plain, connect(parts) as foreign, connect(parts) as above:
        await raw.initialize([folder.as_uri()])
        await plain.initialize([folder.as_uri()], ours=False)
        await above.initialize([tmp_path.as_uri()], ours=False)
        await foreign.initialize([elsewhere.as_uri()], ours=False)
        session_id, conflict_id = await conflict(raw, folder)
        for client in (plain, above):
            told = await diagnostics(client, (folder / "a.txt").as_uri())
            (found,) = told["diagnostics"]
            assert (found["code"], found["source"], found["severity"]) == ("patch-conflict", "standfast", 2)
            assert found["data"] == {"sessionId": session_id, "conflictId": conflict_id}
            assert found["range"]["start"] == {"line": 1, "character": 0}
        await foreign.ask("ping", "standfast/daemon/status")
        assert not [m for m in foreign.heard if m.get("method") == "textDocument/publishDiagnostics"]


@pytest.mark.requirement("R-RECOVER-18")
@pytest.mark.scenario("d07")
async def test_actions_come_by_place_whatever_the_client_echoes(raw: Raw, folder: Path) -> None:
    await raw.initialize([folder.as_uri()])
    await conflict(raw, folder)
    uri = (folder / "a.txt").as_uri()
    (shown,) = (await diagnostics(raw, uri))["diagnostics"]
    without_data = {key: value for key, value in shown.items() if key != "data"}
    wanted = [
        "Apply here: line 2",
        "Apply here: line 4",
        "Let the agent read the file again and retry",
        "Keep the file as it is",
        "Dismiss",
        "Show difference",
    ]
    for range_, echoed in ((place(1, 0), []), (place(1, 1), [without_data]), (place(1, 0, 1), [shown])):
        assert [action["title"] for action in await code_actions(raw, uri, range_, echoed)] == wanted
    assert await code_actions(raw, uri, place(2)) == []
    assert (
        await code_actions(raw, uri, {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}) == []
    )
    assert await code_actions(raw, uri, place(1), only=["refactor"]) == []
    assert len(await code_actions(raw, uri, place(1), only=["quickfix"])) == len(wanted)
    assert await code_actions(raw, (folder / "b.txt").as_uri(), place(1)) == []


@pytest.mark.requirement("R-RECOVER-17")
@pytest.mark.requirement("R-RECOVER-19")
async def test_an_action_is_carried_out_by_its_command_and_takes_the_diagnostic_away(raw: Raw, folder: Path) -> None:
    await raw.initialize([folder.as_uri()], ours=False)
    session_id, _ = await conflict(raw, folder)
    uri = (folder / "a.txt").as_uri()
    await diagnostics(raw, uri)
    action = next(a for a in await code_actions(raw, uri, place(1)) if a["title"] == "Apply here: line 4")
    stripped = {key: value for key, value in action.items() if key != "command"}
    resolved = await raw.ask(number(), "codeAction/resolve", stripped)
    assert resolved["command"] == action["command"]
    command = resolved["command"]
    done = await execute(raw, command["command"], *command["arguments"])
    assert done["conflict"]["state"] == "resolved" and done["conflict"]["action"] == "applyAt"
    assert (folder / "a.txt").read_text() == "one\nx\ntwo\ny\n"
    assert (await diagnostics(raw, uri, empty=True))["diagnostics"] == []
    assert await code_actions(raw, uri, place(1)) == []
    raw.request("again", "workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    assert (await raw.answer("again"))["error"]["data"]["reason"] == "ActionNotAvailable"
    assert session_id


@pytest.mark.scenario("d05")
async def test_settling_a_conflict_by_hand_clears_it_for_that_version_and_nothing_older_follows(
    parts: Daemon, raw: Raw, folder: Path
) -> None:
    await raw.initialize([folder.as_uri()])
    (folder / "w.txt").write_text("mine\n")
    session_id = await session(raw, folder)
    uri = (folder / "w.txt").as_uri()
    open_document(raw, uri, "mine\n", 1)
    await do(raw, session_id, "/write w.txt\ntheirs\n/end")
    shown = await diagnostics(raw, uri)
    assert shown["version"] == 1 and shown["diagnostics"][0]["code"] == "file-changed"
    change_document(raw, uri, "theirs\n", 2)
    cleared = await diagnostics(raw, uri, empty=True)
    assert cleared == {"uri": uri, "version": 2, "diagnostics": []}
    parts.core.publisher.board.show_all()
    await parts.core.publisher.settled()
    await raw.ask("ping", "standfast/daemon/status")
    told = [m["params"] for m in raw.heard if m.get("method") == "textDocument/publishDiagnostics"]
    assert [(p.get("version"), len(p["diagnostics"])) for p in told] == [(1, 1), (2, 0)]
    change_document(raw, uri, "mine again\n", 3)
    back = await raw.told("textDocument/publishDiagnostics", lambda p: p.get("version") == 3)
    assert len(back["diagnostics"]) == 1


@pytest.mark.scenario("d23")
async def test_a_document_is_one_however_its_uri_is_spelt_and_is_answered_in_the_clients_spelling(
    raw: Raw, tmp_path: Path
) -> None:
    folder = tmp_path / "my dir"
    folder.mkdir()
    (folder / "a#1ä.txt").write_text(TEXT)
    await raw.initialize([folder.as_uri()])
    session_id = await session(raw, folder)
    base = folder.as_uri()
    spelt, other = f"{base}/a%231%c3%a4.txt", f"{base.replace('my%20dir', 'my%20%64ir')}/%61%231%C3%A4.txt"
    open_document(raw, spelt, TEXT)
    await do(raw, session_id, AMBIGUOUS.replace("a.txt", "a#1ä.txt"))
    told = await diagnostics(raw, spelt)
    assert told["uri"] == spelt
    assert await code_actions(raw, other, place(1)) != []
    uris = {m["params"]["uri"] for m in raw.heard if m.get("method") == "textDocument/publishDiagnostics"}
    assert uris == {spelt}


@pytest.mark.scenario("d18")
@pytest.mark.parametrize(("encoding", "end"), [("utf-8", 6), ("utf-16", 4), ("utf-32", 3)])
async def test_columns_are_counted_as_the_client_counts_them(raw: Raw, folder: Path, encoding: str, end: int) -> None:
    result = await raw.initialize([folder.as_uri()], capabilities={"general": {"positionEncodings": [encoding]}})
    assert result["capabilities"]["positionEncoding"] == encoding
    text = "one\nx😋y\nx😋y\n"
    (folder / "a.txt").write_text(text)
    uri = (folder / "a.txt").as_uri()
    open_document(raw, uri, text)
    session_id = await session(raw, folder)
    await do(raw, session_id, AMBIGUOUS.replace("-x\n+y", "-x😋y\n+z"))
    (found,) = (await diagnostics(raw, uri))["diagnostics"]
    assert found["range"] == place(1, 0, end)


async def test_what_is_open_is_shown_when_the_folder_is_opened_and_no_longer_when_it_is_closed(
    parts: Daemon, raw: Raw, folder: Path, tmp_path: Path
) -> None:
    await raw.initialize([folder.as_uri()])
    await conflict(raw, folder)
    uri = (folder / "a.txt").as_uri()
    async with connect(parts) as late:
        await late.initialize([], ours=False)
        await late.ask("ping", "standfast/daemon/status")
        assert not [m for m in late.heard if m.get("method") == "textDocument/publishDiagnostics"]
        one = {"uri": folder.as_uri(), "name": "one"}
        late.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [one], "removed": []}})
        assert len((await diagnostics(late, uri))["diagnostics"]) == 1
        late.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [one]}})
        await diagnostics(late, uri, empty=True)


@pytest.mark.scenario("d09")
async def test_closing_a_folder_detaches_its_own_sessions_only(raw: Raw, tmp_path: Path) -> None:
    one, two = tmp_path / "a", tmp_path / "b"
    one.mkdir()
    two.mkdir()
    await raw.initialize([one.as_uri(), two.as_uri()])
    gone, kept = await session(raw, one), await session(raw, two)
    removed = {"uri": one.as_uri(), "name": "a"}
    raw.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [removed]}})
    await do(raw, kept, "/write x\n2\n/end")
    assert (two / "x").read_text() == "2\n" and not (one / "x").exists()
    await raw.ask(number(), "standfast/session/update", {"sessionId": gone, "title": "t"})
    await raw.ask(number(), "standfast/session/update", {"sessionId": kept, "title": "t"})
    await event(raw, "session_updated", sessionId=kept)
    assert not [
        m for m in raw.heard if m.get("method") == "standfast/event" and m["params"]["event"]["sessionId"] == gone
    ]


async def test_a_client_of_ours_is_told_what_wants_attention_by_folder(raw: Raw, folder: Path) -> None:
    await raw.initialize([folder.as_uri()])
    session_id, conflict_id = await conflict(raw, folder)
    told = await raw.told("standfast/attention/changed", lambda p: bool(p["items"]))
    assert told["workspaceUri"] == folder.as_uri()
    (item,) = told["items"]
    uri = (folder / "a.txt").as_uri()
    assert {key: item[key] for key in ("code", "sessionId", "conflictId", "uri", "line")} == {
        "code": "patch-conflict",
        "sessionId": session_id,
        "conflictId": conflict_id,
        "uri": uri,
        "line": 2,
    }
    await raw.ask(number(), "standfast/conflict/resolve", {"conflictId": conflict_id, "action": "dismiss"})
    assert (await raw.told("standfast/attention/changed", lambda p: not p["items"]))["items"] == []


async def test_a_file_that_a_run_changed_has_lenses_to_review_and_to_undo_it(raw: Raw, folder: Path) -> None:
    (folder / "c.txt").write_text("before\n")
    await raw.initialize([folder.as_uri()])
    session_id = await session(raw, folder)
    run_id = await do(raw, session_id, "/read c.txt\n/write c.txt\nafter\n/end")
    uri = (folder / "c.txt").as_uri()
    lenses: Any = await raw.ask(number(), "textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert [lens["command"]["command"] for lens in lenses] == ["standfast.diff.show", "standfast.run.undo"]
    shown = await execute(raw, lenses[0]["command"]["command"], *lenses[0]["command"]["arguments"])
    assert shown == {"files": [{"uri": uri, "before": "before\n", "after": "after\n"}]}
    await execute(raw, lenses[1]["command"]["command"], {"runId": run_id})
    assert (folder / "c.txt").read_text() == "before\n"
    none = await raw.ask(number(), "textDocument/codeLens", {"textDocument": {"uri": (folder / "d.txt").as_uri()}})
    assert none == []
