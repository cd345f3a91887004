"""The store under fire: kills, full and locked and read-only disks, damage, strangers (reliability.md F1, F6–F12)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from histories import SteppingClock, call, created, entry, result, said, started, whole_history

from standfast.errors import StoreError
from standfast.events.types import RunFinished, ToolRecovery, ToolStarted
from standfast.store import queries, schema
from standfast.store.backup import restore_backup
from standfast.store.base import Entry
from standfast.store.health import FREE_MIN, Probe
from standfast.store.sqlite import SqliteStore

WRITER = Path(__file__).with_name("writing_process.py")


def write(path: Path, count: int, *before: str, failpoints: str = "") -> subprocess.CompletedProcess[str]:
    """Run the writing process to its end or its death."""
    words = [*before, sys.executable, str(WRITER), str(path), str(count)]
    environment = os.environ | {"FAILPOINTS": failpoints}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)


def acknowledged(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ack")]


async def stored(path: Path) -> list[int]:
    store = await SqliteStore.open(path, SteppingClock())
    try:
        assert await store.damage("s") is None
        return [event.seq for event in await store.events("s", limit=1000)]
    finally:
        await store.close()


def change(path: Path, statement: str, *values: object) -> None:
    """What a person with a database shell, or a bad disk, might do."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize(("point", "extra"), [("before_append=kill@5", 0), ("after_append=kill@5", 1)])
async def test_after_kill_9_everything_acknowledged_is_stored_and_at_most_one_event_more(
    path: Path, point: str, extra: int
) -> None:
    done = write(path, 10, failpoints=point)
    assert done.returncode == -9
    assert acknowledged(done) == [1, 2, 3, 4]
    assert await stored(path) == list(range(1, 5 + extra))


async def test_killed_in_a_checkpoint_nothing_is_lost(path: Path) -> None:
    done = write(path, 1000, failpoints="in_checkpoint=kill")
    assert done.returncode == -9
    assert (await stored(path))[: len(acknowledged(done))] == acknowledged(done)
    assert len(acknowledged(done)) > 10


@pytest.mark.parametrize("code", ["EIO", "EROFS"])
async def test_a_failed_write_counts_as_not_stored_and_the_next_one_works(path: Path, code: str) -> None:
    done = write(path, 10, failpoints=f"before_append=error@5:{code}")
    reason = {"EIO": "StoreFailed", "EROFS": "StoreReadOnly"}[code]
    assert f"refused {reason}" in done.stdout
    assert await stored(path) == [1, 2, 3, 4]
    assert acknowledged(write(path, 2)) == [5, 6]


@pytest.mark.scenario("a11")
async def test_on_a_full_disk_nothing_begins_and_the_interruption_is_still_recorded(tmp_path: Path) -> None:
    """A 12 MiB tmpfs in a mount namespace of the process's own; 1 MiB of it is the ballast."""
    kept, inside = tmp_path / "kept", tmp_path / "disk"
    kept.mkdir()
    inside.mkdir()
    script = f'mount -t tmpfs -o size=12m none {inside} && "$@"; cp -a {inside}/state/. {kept}'
    done = write(inside / "state" / "standfast.db", 2000, "unshare", "-Urm", "sh", "-c", script, "sh")
    if "unshare:" in done.stderr:
        pytest.skip(f"no user namespaces here: {done.stderr}")
    told = done.stdout.splitlines()
    assert "refused StorageFull" in told, done.stderr
    acks = acknowledged(done)
    assert acks == list(range(1, len(acks) + 1))
    assert told[-2:] == [f"read {len(acks)}", "closed"]
    store = await SqliteStore.open(kept / "standfast.db", SteppingClock())
    events = await store.events("s", limit=1000)
    assert [event.seq for event in events] == acks
    assert events[-1].fact.type == "run_finished"
    assert [event.seq for event in await store.append(entry("s", said()))] == [len(acks) + 1]
    await store.close()


@pytest.mark.scenario("a13")
async def test_a_lock_of_another_program_is_waited_for(path: Path, store: SqliteStore) -> None:
    await store.append(entry("s", created()))
    holder = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE'); "
        "print('held', flush=True); sys.stdin.readline(); c.execute('ROLLBACK')"
    )
    words = [sys.executable, "-c", holder, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        waiting = [asyncio.ensure_future(store.append(entry("s", said(f"m{n}")))) for n in range(100)]
        assert await store.session("s") is not None  # reads go on
        assert not any(one.done() for one in waiting)
        other.stdin.write("\n")
        other.stdin.close()
        events = [event for batch in await asyncio.gather(*waiting) for event in batch]
    assert [event.seq for event in events] == list(range(2, 102))


async def test_the_connections_wait_long_enough_and_use_the_write_ahead_log(store: SqliteStore) -> None:
    def look(connection: sqlite3.Connection) -> tuple[object, ...]:
        names = ("journal_mode", "busy_timeout", "trusted_schema", "cell_size_check")
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)

    assert await store.transact(look) == ("wal", 10_000, 0, 1)


@pytest.mark.scenario("a15")
async def test_a_damaged_store_is_moved_away_whole_and_what_is_readable_carried_over(path: Path) -> None:
    write(path, 60)
    data = bytearray(path.read_bytes())
    data[8192 : 8192 + 4096] = bytes(4096)
    path.write_bytes(data)
    store = await SqliteStore.open(path, SteppingClock())
    (notice,) = store.degraded()
    assert notice["code"] == "store-replaced"
    moved = next(name for name in path.parent.glob("*.corrupt-*") if not name.name.endswith(("-wal", "-shm")))
    assert str(moved) in notice["message"]
    assert moved.read_bytes() == data
    await store.close()
    again = await SqliteStore.open(path, SteppingClock())
    assert again.degraded() == []
    await again.close()


async def test_rows_around_a_damaged_page_of_the_log_are_carried_over_and_the_gap_is_said(path: Path) -> None:
    write(path, 60)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    at = data.rindex(b'"seq":30,') // 4096 * 4096
    path.write_bytes(data[:at] + bytes(4096) + data[at + 4096 :])
    store = await SqliteStore.open(path, SteppingClock())
    events = await store.events("s", limit=1000)
    assert 30 < len(events) < 61
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    damage = await store.damage("s")
    assert damage is not None
    assert damage.at_seq <= 30
    row = await store.session("s")
    assert row is not None
    assert row.head_seq == len(events)
    await store.close()


@pytest.mark.scenario("a17")
async def test_a_store_of_a_newer_version_is_read_and_its_bytes_stay(path: Path, store: SqliteStore) -> None:
    await store.append(entry("s", created()))
    await store.close()
    change(path, "ALTER TABLE sessions ADD COLUMN shiny TEXT NOT NULL DEFAULT 'x'")
    change(path, f"PRAGMA user_version={len(schema.STEPS) + 1}")
    before = path.read_bytes()
    newer = await SqliteStore.open(path, SteppingClock())
    with pytest.raises(StoreError) as raised:
        await newer.append(entry("s", said()))
    assert raised.value.reason == "StoreReadOnly"
    assert f"version {len(schema.STEPS) + 1}; this one knows {len(schema.STEPS)}" in raised.value.message
    assert [event.seq for event in await newer.events("s")] == [1]
    assert [one["code"] for one in newer.degraded()] == ["store-read-only"]
    await newer.settle()
    await newer.close()
    assert path.read_bytes() == before


NEXT = (
    "CREATE TABLE later (id INTEGER PRIMARY KEY);\nINSERT INTO later VALUES (1);\n"
    "ALTER TABLE runs ADD COLUMN colour TEXT;\nUPDATE runs SET colour = 'red';\n"
)


@pytest.mark.scenario("a18")
async def test_a_migration_killed_half_way_is_taken_up_again_with_a_backup_of_the_old(
    path: Path, store: SqliteStore
) -> None:
    await store.append(entry("done", created()))
    await store.append(entry("open", created(), said(), started(), call("c"), ToolStarted(call_id="c"), run_id="r"))
    await store.append(entry("open", ToolRecovery(call_id="c", status="uncertain"), run_id="r"))
    await store.close()
    script = (
        "import asyncio, sys; from pathlib import Path; from standfast.clock import SystemClock\n"
        "from standfast.store import schema; from standfast.store.sqlite import SqliteStore\n"
        f"asyncio.run(SqliteStore.open(Path(sys.argv[1]), SystemClock(), steps=[*schema.STEPS, {NEXT!r}]))"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=os.environ | {"FAILPOINTS": "in_migration=kill@3"}, check=False
    )
    assert killed.returncode == -9
    (backup,) = (path.parent / "backups").glob(f"before-migration-v{len(schema.STEPS)}-*.db")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    migrated = await SqliteStore.open(path, SteppingClock(), steps=[*schema.STEPS, NEXT])
    assert {row.session_id for row in (await migrated.sessions())[0]} == {"done", "open"}
    (uncertain,) = await migrated.calls(session_id="open", recovery=True)
    assert (uncertain.call_id, uncertain.state) == ("c", "started")
    assert await migrated.transact(lambda c: c.execute("SELECT colour FROM runs").fetchall()) == [("red",)]
    await migrated.close()
    old = await SqliteStore.open(backup, SteppingClock())
    assert len((await old.sessions())[0]) == 2
    await old.close()


@pytest.mark.scenario("ATK-53")
async def test_a_database_of_another_program_and_a_link_are_refused_and_not_touched(path: Path) -> None:
    path.parent.mkdir()
    change(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError) as raised:
        await SqliteStore.open(path, SteppingClock())
    assert raised.value.reason == "StoreForeign"
    assert path.read_bytes() == before
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(StoreError, match="is a link"):
        await SqliteStore.open(link, SteppingClock())


@pytest.mark.scenario("ATK-54")
@pytest.mark.parametrize(
    ("statement", "at_seq"),
    [
        ("UPDATE events SET body = replace(body, 'fix it', 'fix me') WHERE seq = 2", 2),
        ("DELETE FROM events WHERE seq = 10", 10),
        ("DELETE FROM events WHERE seq > 20", 21),
        ("UPDATE events SET at_ms = at_ms + 1 WHERE seq = 5", 5),
    ],
)
async def test_a_history_that_was_changed_or_cut_is_noticed(
    path: Path, store: SqliteStore, statement: str, at_seq: int
) -> None:
    await store.append(Entry("s", whole_history()))
    change(path, statement)
    damage = await store.damage("s")
    assert damage is not None
    assert damage.at_seq == at_seq


async def test_a_flipped_byte_in_a_blob_is_never_handed_out(path: Path, store: SqliteStore) -> None:
    name = await store.put_blob(b"precious")
    change(path, "UPDATE blobs SET data = ?", b"preciouS")
    with pytest.raises(StoreError) as raised:
        await store.blob(name)
    assert raised.value.reason == "StoreDamaged"


@pytest.mark.scenario("e14")
async def test_nobody_else_can_read_the_store_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        store = await SqliteStore.open(path, SteppingClock())
        await store.append(entry("s", created()))
        await store.backup()
        modes = {name.name: stat.S_IMODE(name.stat().st_mode) for name in path.parent.rglob("*") if name.is_file()}
        await store.close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(modes) >= 5
    assert set(modes.values()) == {0o600}
    path.chmod(0o644)
    await (await SqliteStore.open(path, SteppingClock())).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_store_that_is_gone_is_not_silently_replaced_by_an_empty_one(path: Path, store: SqliteStore) -> None:
    await store.append(entry("s", created()))
    await store.backup()
    await store.close()
    path.unlink()
    empty = await SqliteStore.open(path, SteppingClock())
    assert [one["code"] for one in empty.degraded()] == ["store-missing"]
    await empty.close()


async def test_the_way_back_to_a_backup_keeps_what_was_there(path: Path, store: SqliteStore) -> None:
    await store.append(entry("s", created()))
    backups = [await store.backup() for _ in range(5)]
    await store.append(entry("s", said()))
    await store.close()
    assert sorted((path.parent / "backups").iterdir()) == backups[-3:]
    kept = restore_backup(path, backups[-1], 7)
    assert kept == path.with_name(path.name + ".replaced-7")
    assert await stored(path) == [1]
    assert await stored(kept) == [1, 2]
    backups[-1].write_bytes(b"no database at all, but long enough to look like a file")
    with pytest.raises(StoreError):
        restore_backup(path, backups[-1], 8)
    assert await stored(path) == [1]


async def test_weaknesses_are_said_while_they_last(path: Path) -> None:
    free = [10 * FREE_MIN]
    probe = Probe(lambda _: "nfs4", lambda _: free[0], sqlite_version=(3, 34, 0), preload="libeatmydata.so")
    store = await SqliteStore.open(path, SteppingClock(), probe=probe)
    assert [one["code"] for one in store.degraded()] == ["network-filesystem", "old-sqlite", "fsync-off"]
    changed = asyncio.Event()
    store.on_degraded(lambda _: changed.set())
    free[0] = FREE_MIN - 1
    await store.append(entry("s", created()))
    await asyncio.wait_for(changed.wait(), 10)
    assert store.degraded()[-1]["code"] == "disk-nearly-full"
    changed.clear()
    free[0] = FREE_MIN
    await store.append(entry("s", said(), call("c"), result("c"), RunFinished(status="succeeded"), run_id="r"))
    await asyncio.wait_for(changed.wait(), 10)
    assert "disk-nearly-full" not in [one["code"] for one in store.degraded()]
    await store.close()


@pytest.mark.scenario("a33")
async def test_a_list_goes_by_an_index_and_reads_no_event(store: SqliteStore) -> None:
    def plans(connection: sqlite3.Connection) -> list[str]:
        found: list[str] = []
        connection.set_trace_callback(found.append)
        queries.sessions(connection, workspace_uris=None, status=None, query=None, cursor=None, limit=50)
        queries.sessions(connection, workspace_uris=["file:///w"], status=None, query=None, cursor=None, limit=50)
        queries.runs(connection, session_id=None, workspace_uris=None, status="failed", cursor=None, limit=50)
        queries.calls(connection, run_id="r", session_id=None, pending=True, recovery=False)
        queries.unfinished_runs(connection)
        queries.sessions_with_open_matters(connection, ["file:///w"])
        connection.set_trace_callback(None)
        return [row[3] for sql in found for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]

    steps = await store.transact(plans)
    assert len(steps) >= 6
    assert not [step for step in steps if "events" in step]
    assert not [
        step
        for step in steps
        if step.startswith("SCAN") and "USING INDEX" not in step and "sessions_newest" not in step
    ]
