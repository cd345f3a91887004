"""`emit` = append, then publish, over the real store: order, cancellation, what is held back until it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from standfast.clock import SystemClock
from standfast.errors import NotFound
from standfast.events.journal import Journal
from standfast.events.types import AssistantChunk, Recorded, RunFinished, SessionCreated, TextContent, UserMessage
from standfast.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "state" / "standfast.db", SystemClock())
    yield opened
    await opened.close()


class Seen:
    """What a subscriber was called with."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []

    def __call__(self, events: list[Recorded]) -> None:
        self.events.extend(events)

    def seqs(self, session_id: str = "s") -> list[int]:
        return [event.seq for event in self.events if event.session_id == session_id]


CREATED = SessionCreated(workspace_uri="file:///w")


def said(n: int) -> UserMessage:
    return UserMessage(message_id=f"m{n}", client_message_id=f"c{n}", content=[TextContent(text="hi")])


def chunk(n: int) -> AssistantChunk:
    return AssistantChunk(attempt=1, offset=n, text="x")


@pytest.mark.requirement("R4.2")
async def test_a_subscriber_sees_what_is_stored_and_nothing_that_is_not(store: SqliteStore) -> None:
    journal, seen = Journal(store), Seen()
    leave = journal.subscribe(seen)
    with pytest.raises(NotFound):
        await journal.emit("nobody", said(1))
    stored = await journal.emit("s", [CREATED, ("r1", said(1)), said(2)], run_id="r2")
    assert [event.run_id for event in stored] == ["r2", "r1", "r2"]
    assert seen.events == stored == await store.events("s")
    leave()
    await journal.emit("s", said(3))
    assert seen.seqs() == [1, 2, 3]


@pytest.mark.requirement("R4.1")
async def test_events_of_many_at_once_are_published_in_the_order_of_their_numbers(store: SqliteStore) -> None:
    journal, seen, deltas = Journal(store), Seen(), Seen()
    journal.subscribe(seen)
    journal.subscribe_deltas(deltas)
    for session in ("a", "b"):
        await journal.emit(session, CREATED)
    await asyncio.gather(*(journal.emit("ab"[n % 2], chunk(n) if n % 3 else said(n)) for n in range(200)))
    await journal.settle()
    for session in ("a", "b"):
        assert seen.seqs(session) == list(range(1, 102))
        assert deltas.seqs(session) == sorted(deltas.seqs(session))


async def test_what_a_power_cut_could_take_back_is_shown_at_once_but_is_no_event_until_it_lasts(
    store: SqliteStore,
) -> None:
    journal, seen, deltas = Journal(store), Seen(), Seen()
    journal.subscribe(seen)
    journal.subscribe_deltas(deltas)
    await journal.emit("s", CREATED)
    await journal.emit("s", chunk(0))
    assert (seen.seqs(), deltas.seqs()) == ([1], [2])
    await journal.emit("s", RunFinished(status="succeeded"), run_id="r")
    assert (seen.seqs(), deltas.seqs()) == ([1, 2, 3], [2])
    await journal.emit("s", chunk(1))
    await journal.settle()
    assert seen.seqs() == [1, 2, 3, 4]
    await journal.emit("s", chunk(2))
    await journal.close()
    assert seen.seqs() == [1, 2, 3, 4, 5]


async def test_a_full_commit_of_one_session_makes_the_streamed_text_of_another_last(store: SqliteStore) -> None:
    journal, seen = Journal(store), Seen()
    journal.subscribe(seen)
    await journal.emit("a", CREATED)
    await journal.emit("b", CREATED)
    await journal.emit("a", chunk(0))
    assert seen.seqs("a") == [1]
    await journal.emit("b", said(1))
    assert seen.seqs("a") == [1, 2]


@pytest.mark.parametrize("turns", range(6))
async def test_cancelling_who_emits_cancels_neither_storing_nor_publishing(store: SqliteStore, turns: int) -> None:
    journal, seen = Journal(store), Seen()
    journal.subscribe(seen)
    await journal.emit("s", CREATED)
    task = asyncio.ensure_future(journal.emit("s", said(1)))
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.close()
    assert seen.events == await store.events("s")
    assert seen.seqs() == [1, 2]


async def test_a_subscriber_that_fails_takes_nothing_from_the_others(store: SqliteStore) -> None:
    def broken(_: list[Recorded]) -> None:
        raise RuntimeError("a bug")

    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    journal, seen = Journal(store), Seen()
    journal.subscribe(broken)
    journal.subscribe(seen)
    await journal.emit("s", CREATED)
    assert seen.seqs() == [1]
    assert [str(error) for error in complaints] == ["a bug"]
