"""Attach, live events, streamed text: every event once and in order, for any number of clients (design.md "Paging")."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import cast

import pytest

from editor.desk import conflict
from standfast.daemon.compose import Daemon
from standfast.editor.streams import LAG, utf16_units
from standfast.events.journal import Journal
from standfast.events.types import AssistantChunk
from wire.raw import Json, Raw, connect

_numbers = itertools.count(1)


async def ask(raw: Raw, method: str, **params: object) -> Json:
    return await raw.ask(f"f{next(_numbers)}", method, params)


async def session(raw: Raw, folder: Path) -> str:
    return (await ask(raw, "standfast/session/create", workspaceUri=folder.as_uri(), mode="auto"))["session"][
        "sessionId"
    ]


async def run(raw: Raw, session_id: str, text: str = "hello") -> None:
    """A whole run; ends when its last event is heard."""
    started = await ask(
        raw, "standfast/run/start", sessionId=session_id, text=text, clientMessageId=f"m{next(_numbers)}"
    )
    await raw.told(
        "standfast/event", lambda p: p["event"]["type"] == "run_finished" and p["event"]["runId"] == started["runId"]
    )


def live(raw: Raw, session_id: str) -> list[Json]:
    return [
        m["params"]["event"]
        for m in raw.heard
        if m.get("method") == "standfast/event" and m["params"]["sessionId"] == session_id
    ]


@pytest.mark.requirement("R-RECOVER-14")
async def test_live_events_begin_right_after_the_answer_and_have_no_gap(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    attached = await ask(raw, "standfast/session/attach", sessionId=session_id)
    await run(raw, session_id)
    seqs = [event["seq"] for event in live(raw, session_id)]
    assert seqs == list(range(attached["headSeq"] + 1, attached["headSeq"] + 1 + len(seqs)))
    stored = await ask(raw, "standfast/session/events", sessionId=session_id, afterSeq=0)
    assert stored["events"] == attached["events"] + live(raw, session_id)


@pytest.mark.requirement("R-RECOVER-14")
async def test_attaching_in_the_middle_of_a_run_loses_nothing_and_doubles_nothing(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    await ask(raw, "standfast/session/attach", sessionId=session_id)
    late: list[tuple[Raw, Json]] = []
    await ask(
        raw, "standfast/run/start", sessionId=session_id, text="/list\n" * 12, clientMessageId=f"m{next(_numbers)}"
    )
    async with contextlib.AsyncExitStack() as stack:
        for number in range(6):
            await raw.until(lambda m, n=number: len(live(raw, session_id)) > 6 * n)
            window = await stack.enter_async_context(connect(parts))
            await window.initialize()
            late.append((window, await ask(window, "standfast/session/attach", sessionId=session_id)))
        heads = [attached["headSeq"] for _, attached in late]
        assert heads == sorted(set(heads)), "each came at another point of the run"
        for window, attached in late:
            await window.told("standfast/event", lambda p: p["event"]["type"] == "run_finished")
            held = attached["events"] + live(window, session_id)
            stored = await ask(window, "standfast/session/events", sessionId=session_id, afterSeq=0)
            assert held == stored["events"]


@pytest.mark.requirement("R-RECOVER-15")
async def test_a_client_that_comes_back_gets_exactly_what_it_missed(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    await ask(raw, "standfast/session/attach", sessionId=session_id)
    async with connect(parts) as window:
        await window.initialize()
        first = await ask(window, "standfast/session/attach", sessionId=session_id)
        await run(window, session_id)
        held = first["events"] + live(window, session_id)
    await run(raw, session_id)
    async with connect(parts) as window:
        await window.initialize()
        last = held[-1]
        back = await ask(
            window, "standfast/session/attach", sessionId=session_id, afterSeq=last["seq"], afterHash=last["hash"]
        )
        assert "damage" not in back
        stored = await ask(window, "standfast/session/events", sessionId=session_id, afterSeq=0)
        assert held + back["events"] == stored["events"]
        wrong = await ask(
            window, "standfast/session/attach", sessionId=session_id, afterSeq=last["seq"], afterHash="0" * 64
        )
        assert wrong["damage"]["atSeq"] == last["seq"]
        damaged = await window.told("standfast/attention/changed", lambda p: bool(p["items"]))
        assert damaged["items"][0]["code"] == "history-damaged"
        last = stored["events"][-1]
        rightly = {"sessionId": session_id, "afterSeq": last["seq"], "afterHash": last["hash"]}
        assert "damage" not in await ask(raw, "standfast/session/attach", **rightly), "that was another client's memory"


async def test_pages_are_spliced_from_the_stored_text(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    await ask(raw, "standfast/session/attach", sessionId=session_id)
    await run(raw, session_id)
    page = await ask(raw, "standfast/session/attach", sessionId=session_id, limit=3)
    assert page["hasMore"] and [e["seq"] for e in page["events"]] == [
        page["headSeq"] - 2,
        page["headSeq"] - 1,
        page["headSeq"],
    ]
    older = await ask(
        raw, "standfast/session/events", sessionId=session_id, beforeSeq=page["events"][0]["seq"], limit=2
    )
    assert [e["seq"] for e in older["events"]] == [page["headSeq"] - 4, page["headSeq"] - 3]


async def test_a_page_of_the_largest_size_says_that_there_are_more(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    journal = cast(Journal, parts.core.feed)
    await journal.emit(session_id, [AssistantChunk(attempt=1, offset=n, text="x") for n in range(1500)])
    for limit in (1000, 5000):
        page = await ask(raw, "standfast/session/events", sessionId=session_id, afterSeq=0, limit=limit)
        assert (len(page["events"]), page["hasMore"]) == (1000, True)
        rest = await ask(raw, "standfast/session/events", sessionId=session_id, afterSeq=1000, limit=limit)
        assert (len(rest["events"]), rest["hasMore"]) == (501, False)
        newest = await ask(raw, "standfast/session/attach", sessionId=session_id, limit=limit)
        assert [e["seq"] for e in newest["events"]] == list(range(502, 1502)) and newest["hasMore"]
        missed = await ask(raw, "standfast/session/attach", sessionId=session_id, afterSeq=3, limit=limit)
        assert [e["seq"] for e in missed["events"]] == list(range(4, 1004)) and missed["hasMore"]


async def test_after_detach_nothing_comes_and_attaching_again_goes_on(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    await ask(raw, "standfast/session/attach", sessionId=session_id)
    await ask(raw, "standfast/session/detach", sessionId=session_id)
    await ask(raw, "standfast/session/update", sessionId=session_id, title="quiet")
    assert live(raw, session_id) == []
    again = await ask(raw, "standfast/session/attach", sessionId=session_id)
    await ask(raw, "standfast/session/update", sessionId=session_id, title="loud")
    await raw.told("standfast/event", lambda p: p["event"]["seq"] == again["headSeq"] + 1)
    assert [e["title"] for e in live(raw, session_id)] == ["loud"]


async def test_a_failed_attach_leaves_a_client_as_it_was(parts: Daemon, raw: Raw) -> None:
    await raw.initialize()
    raw.request(1, "standfast/session/attach", {"sessionId": "ses_none"})
    assert (await raw.answer(1))["error"]["data"]["reason"] == "SessionNotFound"
    assert next(iter(parts.core.clients)).attachments == {}


@pytest.mark.requirement("design.md Streamed text")
async def test_streamed_text_is_joined_and_says_where_it_belongs(raw: Raw, tmp_path: Path) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    await ask(raw, "standfast/session/attach", sessionId=session_id)
    await run(raw, session_id, "what can you do?")
    deltas = [m["params"] for m in raw.heard if m.get("method") == "standfast/delta"]
    message = next(e for e in live(raw, session_id) if e["type"] == "assistant_message")
    text = message["blocks"][0]["text"]
    at = 0
    for delta in deltas:
        assert (delta["sessionId"], delta["attempt"], delta["offset"]) == (session_id, 1, at)
        at += utf16_units(delta["text"])
    assert "".join(delta["text"] for delta in deltas) == text
    assert len(deltas) < len(text.split())
    order = [
        m["method"]
        for m in raw.heard
        if m.get("method") == "standfast/delta"
        or (m.get("method") == "standfast/event" and m["params"]["event"]["type"] == "assistant_message")
    ]
    assert order[-1] == "standfast/event" and order.count("standfast/event") == 1


async def test_a_session_is_told_of_to_whom_it_concerns(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with connect(parts) as near, connect(parts) as far:
        await raw.initialize()
        await near.initialize([here.as_uri()])
        await far.initialize([there.as_uri()])
        session_id = await session(raw, here)
        told = await near.told("standfast/session/changed")
        assert told["session"]["sessionId"] == session_id
        await parts.core.publisher.settled()
        await far.ask("ping", "standfast/daemon/status")
        assert not [m for m in far.heard if m.get("method") == "standfast/session/changed"]
        told = await raw.told("standfast/session/changed")
        assert told["session"]["sessionId"] == session_id, "where no folder is open, all sessions are listed"


async def test_a_deleted_session_is_told_to_all_who_show_it_with_what_they_show_of_it(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with connect(parts) as near, connect(parts) as follower, connect(parts) as far:
        await raw.initialize([here.as_uri()])
        await near.initialize([here.as_uri()])
        await follower.initialize([there.as_uri()])
        await far.initialize([there.as_uri()])
        session_id, _ = await conflict(raw, here)
        await ask(follower, "standfast/session/attach", sessionId=session_id)
        assert (await near.told("standfast/attention/changed", lambda p: bool(p["items"])))["items"]
        await ask(raw, "standfast/session/delete", sessionId=session_id)
        for client in (raw, near, follower):
            assert (await client.told("standfast/session/deleted"))["sessionId"] == session_id
        assert (await near.told("standfast/attention/changed", lambda p: not p["items"]))["items"] == []
        await parts.core.publisher.settled()
        await ask(far, "standfast/daemon/status")
        assert not [m for m in far.heard if m.get("method") == "standfast/session/deleted"]


@pytest.mark.scenario("ATK-52")
async def test_a_client_that_stops_reading_during_twenty_thousand_deltas_holds_little_and_catches_up_exactly(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    await raw.initialize()
    session_id = await session(raw, tmp_path)
    attached = await ask(raw, "standfast/session/attach", sessionId=session_id)
    journal = cast(Journal, parts.core.feed)
    async with connect(parts) as stalled:
        await stalled.initialize()
        await ask(stalled, "standfast/session/attach", sessionId=session_id)
        stopped = list(parts.core.clients)[-1]
        stalled.stop_reading()
        most = 0
        for start in range(0, 20_000, 100):
            chunks = [AssistantChunk(attempt=1, offset=5 * (start + n), text=f"{start + n:05d}") for n in range(100)]
            await journal.emit(session_id, chunks, run_id="run_1")
            most = max(most, stopped.outbox.held)
        assert most < 2 * LAG
        await journal.settle()
        assert stopped.outbox.held > LAG, "the events wait for it"
        assert not stopped.outbox.dropped
        stalled.read_on()
        last = attached["headSeq"] + 20_000
        for client in (raw, stalled):
            await client.told("standfast/event", lambda p: p["event"]["seq"] == last)
            told = live(client, session_id)
            assert [event["seq"] for event in told] == list(range(attached["headSeq"] + 1, last + 1))
            assert "".join(event["text"] for event in told) == "".join(f"{n:05d}" for n in range(20_000))
