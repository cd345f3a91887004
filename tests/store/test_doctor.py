"""The log alone makes the tables: rebuilding finds no difference, whatever the history; and old logs are read for ever."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from histories import Pair, SteppingClock, created, entry, random_history, said, started, whole_history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standfast.clock import RandomIds
from standfast.store import doctor, schema
from standfast.store.base import Entry
from standfast.store.cold import packed
from standfast.store.importing import import_session
from standfast.store.sqlite import SqliteStore

GOLDEN = Path(__file__).parents[1] / "golden"


async def report_after(histories: list[list[Pair]]) -> dict[str, object]:
    """What doctor says of a store with these sessions; their entries are stored in turn, one fact each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = await SqliteStore.open(path, SteppingClock())
        for n in range(len(histories)):
            await store.append(entry(f"s{n}", created()))
        longest = max(map(len, histories), default=0)
        await asyncio.gather(
            *(
                store.append(Entry(f"s{n}", [history[step]]))
                for step in range(longest)
                for n, history in enumerate(histories)
                if step < len(history)
            )
        )
        await store.close()
        return await doctor.check(path)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(random_history(), min_size=1, max_size=3))
def test_for_any_history_the_tables_are_what_the_log_says(histories: list[list[Pair]]) -> None:
    report = asyncio.run(report_after(histories))
    assert report["differences"] == []
    assert report["damage"] == []
    assert report["ok"] is True


async def test_the_whole_history_is_well(path: Path, store: SqliteStore) -> None:
    await store.append(Entry("s", whole_history()))
    await store.put_blob(b"bytes")
    report = await doctor.check(path)  # beside the open store, as `doctor` beside a daemon
    assert report == {
        "ok": True,
        "store": str(path),
        "version": len(schema.STEPS),
        "kept": [],
        "quickCheck": "ok",
        "sessions": 1,
        "events": len(whole_history()),
        "damage": [],
        "damagedBlobs": [],
        "differences": [],
        "degraded": [],
    }


async def test_rebuild_makes_right_what_differed_and_says_what(path: Path, store: SqliteStore) -> None:
    await store.append(Entry("s", whole_history()))
    await store.append(entry("t", created(), said("m9"), started(), run_id="r9"))
    rows = await store.calls(session_id="s")
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tool_calls SET state = 'proposed' WHERE call_id = 'call_1'")
        connection.execute("DELETE FROM runs WHERE run_id = 'r9'")
        connection.execute("INSERT INTO allowances VALUES ('s', 'everything')")
    wrong = await doctor.check(path)
    assert wrong["ok"] is False
    assert wrong["differences"] == [
        "runs: r9 is missing",
        "tool_calls: call_1 differs in state",
        "allowances: s everything is not in the log",
    ]
    right = await doctor.rebuild(path)
    assert (right["ok"], right["rebuilt"]) == (True, wrong["differences"])
    again = await SqliteStore.open(path, SteppingClock())
    assert await again.calls(session_id="s") == rows
    await again.close()


@pytest.mark.parametrize("look", [1, 2, 3])
async def test_a_rebuild_tells_how_far_it_is_and_changes_nothing_when_it_is_cancelled(
    path: Path, store: SqliteStore, look: int
) -> None:
    """It replays the events three times: to see what differs, to make the rows, to see that none differs any more."""
    await store.append(Entry("s", whole_history()))
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tool_calls SET state = 'proposed' WHERE call_id = 'call_1'")
    loop, heard, cancelled = asyncio.get_running_loop(), list[tuple[str, int, int]](), threading.Event()

    def told(what: str, done: int, total: int) -> None:
        heard.append((what, done, total))
        if [one[:2] for one in heard].count(("events", 0)) == look and done == 0:
            loop.call_soon_threadsafe(lambda: (work.cancel(), loop.call_soon(cancelled.set)))
            assert cancelled.wait(30)

    work = asyncio.ensure_future(doctor.rebuild(path, told))
    with pytest.raises(asyncio.CancelledError):
        await work
    events = len(whole_history())
    once = [("pages", 0, 1), ("histories", 0, 1), ("events", 0, events)]
    assert heard == [*once, ("events", 0, events), ("events", events, events), *once][: len(heard)]
    differs = ["tool_calls: call_1 differs in state"] if look < 3 else []
    assert (await doctor.check(path))["differences"] == differs


async def test_rebuild_keeps_a_session_whose_beginning_cannot_be_read(path: Path, store: SqliteStore) -> None:
    await store.append(entry("s", created(title="kept"), said()))
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('UPDATE events SET body = \'{"type":"strange","v":1}\' WHERE seq = 1')
    report = await doctor.rebuild(path)
    assert report["sessions"] == 1
    assert report["damage"][0]["atSeq"] == 1
    again = await SqliteStore.open(path, SteppingClock())
    row = await again.session("s")
    assert row is not None
    assert row.title == "kept"
    await again.close()


async def test_a_store_that_is_not_there_is_no_trouble(path: Path) -> None:
    report = await doctor.check(path)
    assert (report["ok"], report["events"]) == (True, 0)
    assert not path.exists()


@pytest.mark.parametrize("log", sorted(GOLDEN.glob("v*/*/")), ids=lambda path: f"{path.parent.name}-{path.name}")
async def test_logs_that_a_release_wrote_are_read_by_every_later_one(log: Path, path: Path, store: SqliteStore) -> None:
    imported = await import_session(store, log, RandomIds())
    assert imported.damage is None
    lines = (log / "events.jsonl").read_text().splitlines()
    assert [text for _, text in await store.wire_events(imported.session_id, limit=1000)] == lines
    events = await store.events(imported.session_id, limit=1000)
    assert not [
        event.fact.type for event in events if type(event.fact).__name__ == "UnknownFact" and log.name == "whole"
    ]
    assert (await doctor.check(path))["ok"] is True


@pytest.mark.scenario("a18")
@pytest.mark.parametrize("dump", sorted(GOLDEN.glob("v*/*.sql")), ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_stores_that_a_release_wrote_need_no_rebuild_after_their_migration(dump: Path, path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as old:
        old.executescript(dump.read_text())
    store = await SqliteStore.open(path, SteppingClock())
    told = await store.transact(lambda c: c.execute("SELECT DISTINCT model FROM spent ORDER BY model").fetchall())
    assert told == [("claude-a",), ("claude-b",)]
    await store.close()
    report = await doctor.check(path)
    assert (report["ok"], report["differences"]) == (True, [])
    assert (await doctor.rebuild(path))["rebuilt"] == []


async def test_what_is_packed_or_damaged_in_an_old_store_does_not_keep_it_from_being_migrated(
    path: Path, clock: SteppingClock
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript((GOLDEN / "v0.1" / "store-1.sql").read_text())
        for number, body in old.execute("SELECT id, body FROM events WHERE session_id = 'ses_golden_cold'").fetchall():
            old.execute("UPDATE events SET body = ? WHERE id = ?", (packed(body), number))
        old.execute("UPDATE events SET body = substr(body, 2) WHERE session_id = 'ses_golden_spent' AND seq = 4")
        old.execute("UPDATE events SET body = x'010203' WHERE session_id = 'ses_golden_whole' AND seq = 8")
    store = await SqliteStore.open(path, clock)
    rows = await store.transact(
        lambda c: c.execute("SELECT session_id, model, sum(requests) FROM spent GROUP BY 1, 2").fetchall()
    )
    assert rows == [
        ("ses_golden_cold", "claude-a", 2), ("ses_golden_cold", "claude-b", 1),
        ("ses_golden_spent", "claude-a", 1), ("ses_golden_spent", "claude-b", 1),
    ]  # fmt: skip
    await store.close()
    assert [one["sessionId"] for one in (await doctor.check(path))["damage"]] == [
        "ses_golden_spent",
        "ses_golden_whole",
    ]


def test_there_are_logs_to_read() -> None:
    assert (GOLDEN / "v0.1" / "whole" / "events.jsonl").exists()
    assert (GOLDEN / "v0.1" / "store-1.sql").exists()
