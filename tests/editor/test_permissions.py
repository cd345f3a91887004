"""A permission is asked of all who attach; the first answer wins; an error is none (design.md `standfast/permission/request`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from editor.desk import event, number, session, start
from standfast.daemon.compose import Daemon
from wire.raw import Json, Raw, connect

WRITE = "/write new.txt\nhello\n/end"


async def question(raw: Raw) -> Json:
    """The whole request: id, method, params."""
    return await raw.until(lambda m: m.get("method") == "standfast/permission/request")


def reply(raw: Raw, request: Json, decision: str, digest: str | None = None) -> None:
    given = {"decision": decision, "digest": request["params"]["digest"] if digest is None else digest}
    raw.send({"jsonrpc": "2.0", "id": request["id"], "result": given})


async def test_every_attached_window_is_asked_and_the_first_answer_holds(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    async with connect(parts) as other:
        await raw.initialize([tmp_path.as_uri()])
        await other.initialize([tmp_path.as_uri()])
        session_id = await session(raw, tmp_path, mode="ask")
        await other.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        run_id = await start(raw, session_id, WRITE)
        first, second = await question(raw), await question(other)
        assert first["params"] == second["params"]
        assert first["params"]["tool"] == "write_file" and first["params"]["files"][0]["kind"] == "add"
        reply(other, second, "allow")
        call_id = first["params"]["callId"]
        assert await raw.told("standfast/permission/resolved") == {"callId": call_id, "decision": "allow"}
        withdrawn = await raw.told("$/cancelRequest")
        assert withdrawn == {"id": first["id"]}
        reply(raw, first, "deny")
        assert (await event(raw, "run_finished", runId=run_id))["status"] == "succeeded"
        assert (tmp_path / "new.txt").read_text() == "hello\n"


@pytest.mark.requirement("R-RECOVER-16")
async def test_an_error_a_foreign_digest_and_nonsense_are_no_answer(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    await raw.initialize([tmp_path.as_uri()])
    session_id = await session(raw, tmp_path, mode="ask")
    run_id = await start(raw, session_id, WRITE)
    asked = await question(raw)
    raw.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
    for number_, (decision, digest) in enumerate((("allow", "of something else"), ("perhaps", None))):
        async with connect(parts) as other:
            await other.initialize([tmp_path.as_uri()])
            attached = await other.ask(number(), "standfast/session/attach", {"sessionId": session_id})
            assert [p["callId"] for p in attached["permissions"]] == [asked["params"]["callId"]], number_
            again = await question(other)
            reply(other, again, decision, digest)
            await other.ask("ping", "standfast/daemon/status")
    assert not (tmp_path / "new.txt").exists()
    async with connect(parts) as last:
        await last.initialize([tmp_path.as_uri()])
        await last.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        reply(last, await question(last), "deny")
        await event(raw, "run_finished", runId=run_id)
    assert not (tmp_path / "new.txt").exists()


async def test_a_plain_client_is_asked_by_a_message_with_buttons(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    async with connect(parts) as plain:
        await raw.initialize([tmp_path.as_uri()])
        await plain.initialize([tmp_path.as_uri()], ours=False)
        session_id = await session(raw, tmp_path, mode="ask")
        run_id = await start(raw, session_id, WRITE)
        asked = await plain.until(lambda m: m.get("method") == "window/showMessageRequest")
        assert "new.txt" in asked["params"]["message"]
        assert [action["title"] for action in asked["params"]["actions"]] == ["Allow", "Deny", "Allow for this session"]
        plain.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": "Allow"}})
        assert (await event(raw, "run_finished", runId=run_id))["status"] == "succeeded"
        assert not [m for m in plain.heard if str(m.get("method")).startswith("standfast/")]
    assert (tmp_path / "new.txt").exists()


async def test_a_dialog_that_was_closed_is_no_answer_and_a_plain_client_that_comes_later_is_asked(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    await raw.initialize([tmp_path.as_uri()])
    session_id = await session(raw, tmp_path, mode="ask")
    run_id = await start(raw, session_id, WRITE)
    await question(raw)
    async with connect(parts) as closing:
        await closing.initialize([tmp_path.as_uri()], ours=False)
        asked = await closing.until(lambda m: m.get("method") == "window/showMessageRequest")
        closing.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        await closing.ask("ping", "standfast/daemon/status")
    async with connect(parts) as late:
        await late.initialize([tmp_path.as_uri()], ours=False)
        asked = await late.until(lambda m: m.get("method") == "window/showMessageRequest")
        late.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": "Deny"}})
        await event(raw, "run_finished", runId=run_id)
    assert not (tmp_path / "new.txt").exists()
