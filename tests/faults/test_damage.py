"""A history or a store whose bytes are not what was written: nothing else is hidden by it, and the person is told where.

reliability.md F5, F11 and ATK-54; the store's own test of each is in tests/store.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from crash import oracle
from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from faults.test_store_faults import (
    cli,
    damage_in,
    degraded,
    history_and_death,
    into_one_file,
    one_run,
    scripted,
    served,
)
from standfast.cli.client import Json
from standfast.store.cold import packed
from support import Editor, configure, open_socket, start_daemon
from support.daemon import places
from support.tiers import FULL

DAMAGE: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("TEXT", lambda body: body[:-20] + b"\xff" + body[-19:]),
    ("TEXT", lambda body: body[:-1] + b'"'),
    ("TEXT", lambda body: body.replace(b'{"seq":', b'{"seq":1', 1)),
    ("BLOB", lambda body: packed(body.decode())[:-9]),
    ("BLOB", lambda body: b"\x07" + body),
]
"""What bad memory or a bad disk can do to an event: not Unicode, not JSON, another number, packed and cut, packed by nobody."""


@pytest.mark.scenario("ATK-54")
async def test_an_event_that_cannot_be_read_hides_no_other_is_told_and_the_person_goes_on(
    home: Path, workspace: Path
) -> None:
    """F11: a session for each event of a run and each kind of damage, with just that one damaged."""

    def answer(request: Request) -> Answer:
        if request.last_text == "write":
            return reply("I write.", tools=[tool("write_file", path="made.txt", content="hello")])
        return reply("Done.")

    with FakeApi(answer) as api:
        configure(home, model={"base_url": api.url})
        env = {"ANTHROPIC_API_KEY": api.key}
        daemon = start_daemon(home, env)
        seen: list[list[Json]] = []
        async with open_socket(home, [workspace]) as editor:
            while len(seen) < (len(seen[0]) * (len(DAMAGE) if FULL else 1) if seen else 1):
                session_id = await editor.create(workspace)
                await one_run(editor, session_id, "write")
                seen.append(await oracle.history(editor, session_id))
            daemon.kill()
        damaged: dict[str, int] = {}
        with contextlib.closing(sqlite3.connect(places(home).store)) as store, store:
            store.text_factory = bytes
            for number, events in enumerate(seen):
                one = events[number % len(events)]
                kind, harm = DAMAGE[number % len(DAMAGE)]
                where = (one["sessionId"], one["seq"])
                [(body,)] = store.execute("SELECT body FROM events WHERE session_id = ? AND seq = ?", where)
                store.execute(
                    f"UPDATE events SET body = CAST(? AS {kind}) WHERE session_id = ? AND seq = ?",
                    (harm(body), *where),
                )
                damaged[one["sessionId"]] = one["seq"]
        assert _damaged_by_doctor(home) == damaged
        async with served(home, workspace, env) as (_, editor):
            for before in seen:
                session_id = before[0]["sessionId"]
                at = damaged[session_id]
                attached = await editor.attach(session_id, afterSeq=before[-1]["seq"], afterHash=before[-1]["hash"])
                assert attached["damage"] == {"atSeq": at, "reason": f"Event {at} is not what was written."}
                await editor.wait_for(lambda: _history_damaged(editor, session_id), "a diagnostic")  # noqa: B023
                stored = await oracle.history(editor, session_id)
                others = [event for event in stored[: len(before)] if event["seq"] != at]
                assert others == [event for event in before if event["seq"] != at]
                assert stored[at - 1]["seq"] == at and stored[at - 1] != before[at - 1]
                assert (await one_run(editor, session_id, "go on"))["status"] == "succeeded"
            assert not api.refused, api.refused
        assert cli(home, "doctor", "--rebuild")[0] == 1
        assert _damaged_by_doctor(home) == damaged


def _damaged_by_doctor(home: Path) -> dict[str, int]:
    return {one["sessionId"]: one["atSeq"] for one in cli(home, "doctor")[1]["damage"]}


def _history_damaged(editor: Editor, session_id: str) -> bool:
    told = editor.told("textDocument/publishDiagnostics")
    return any(session_id in one["uri"] and damage_in(one) for one in told)


@pytest.mark.scenario("ATK-54")
async def test_a_store_that_was_copied_without_its_log_is_told_to_whoever_saw_more(home: Path, workspace: Path) -> None:
    session_id, seen = await history_and_death(home, workspace)
    store = places(home).store
    log = store.with_name(store.name + "-wal")
    assert log.stat().st_size > 0, "everything is in the database: nothing is lost without its log"
    saved = store.with_name("saved")
    into_one_file(store)  # a whole store, then one run more that stays in the log
    async with served(home, workspace) as (daemon, editor):
        await one_run(editor, session_id, "/read a.py")
        seen = await oracle.history(editor, session_id)
        saved.write_bytes(store.read_bytes())
        daemon.kill()
    for name in (log, store.with_name(store.name + "-shm")):
        name.unlink(missing_ok=True)
    os.replace(saved, store)
    async with served(home, workspace) as (_, editor):
        attached = await editor.attach(session_id, afterSeq=seen[-1]["seq"], afterHash=seen[-1]["hash"])
        assert attached["damage"]["atSeq"] == attached["headSeq"] < seen[-1]["seq"]
        assert f"{seen[-1]['seq']} was seen before: it was cut" in attached["damage"]["reason"]
        await editor.wait_for(lambda: _history_damaged(editor, session_id), "a diagnostic")
        assert (await one_run(editor, session_id, "/read a.py"))["status"] == "succeeded"


@pytest.mark.scenario("a15")
@pytest.mark.parametrize("kept", [0.9, 0.5, 0.01])
async def test_of_a_store_that_was_cut_the_bytes_are_kept_and_the_person_is_told_where(
    home: Path, workspace: Path, kept: float
) -> None:
    await history_and_death(home, workspace)
    store = places(home).store
    into_one_file(store)
    data = store.read_bytes()
    store.write_bytes(data[: int(len(data) * kept)])
    async with served(home, workspace) as (_, editor):
        told = await editor.wait_for(lambda: degraded(editor).get("store-replaced"), "the person to be told")
        [moved] = [name for name in store.parent.glob("*.corrupt-*") if not name.name.endswith(("-wal", "-shm"))]
        assert str(moved) in told and "carried over" in told and "standfast doctor" in told
        assert data.startswith(moved.read_bytes()[:100])
        assert (await one_run(editor, await editor.create(workspace), "/read a.py"))["status"] == "succeeded"


async def test_without_its_pre_image_nothing_is_undone_and_the_person_is_told_why(home: Path, workspace: Path) -> None:
    """A store whose blobs are gone (a copy that left them out, a salvage): the file stays as it is."""
    scripted(home)
    async with served(home, workspace) as (daemon, editor):
        session_id = await editor.create(workspace)
        run_id = await editor.start(session_id, "/read a.py\n/write a.py\nnew\n/end")
        assert (await editor.run_end(run_id))["status"] == "succeeded"
        daemon.kill()
    assert (workspace / "a.py").read_text() == "new\n"
    with contextlib.closing(sqlite3.connect(places(home).store)) as store, store:
        assert store.execute("DELETE FROM blobs").rowcount > 0
    async with served(home, workspace) as (_, editor):
        await editor.attach(session_id)
        undone = await editor.request("standfast/run/undo", {"runId": run_id})
        assert undone["files"] == []
        raised = await editor.event("conflict_raised")
        assert (raised["path"], raised["reason"]) == ("a.py", "FILE_CHANGED")
        assert "What it held before is no longer in the store." in raised["message"]
        assert (workspace / "a.py").read_text() == "new\n"
        assert (await one_run(editor, session_id, "/read a.py"))["status"] == "succeeded"
