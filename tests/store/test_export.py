"""Sessions as files: out, in again, never twice, never silently damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import SteppingClock, call, created, entry, queued, said, started, whole_history

from standfast.clock import RandomIds
from standfast.errors import NotFound, StandfastError
from standfast.events.types import AssistantChunk, ToolStarted
from standfast.store import doctor
from standfast.store.base import Entry
from standfast.store.export import export_session
from standfast.store.importing import import_session
from standfast.store.records import Record, Skipped, read_records
from standfast.store.sqlite import SqliteStore


@pytest.fixture
async def exported(store: SqliteStore, tmp_path: Path) -> Path:
    """The whole history, with a blob that it mentions, as files."""
    blob = await store.put_blob(b"before")
    started_with = ToolStarted.model_validate(
        {"call_id": "call_9", "intents": [{"kind": "file", "uri": "file:///w/a.py", "beforeBlob": blob}]}
    )
    await store.append(Entry("s", [*whole_history(), ("run_3", call("call_9")), ("run_3", started_with)]))
    await export_session(store, "s", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
async def other(tmp_path: Path) -> SqliteStore:
    return await SqliteStore.open(tmp_path / "other" / "store.db", SteppingClock())


@pytest.mark.requirement("R3.4")
async def test_what_was_exported_comes_back_to_the_letter(
    store: SqliteStore, other: SqliteStore, exported: Path
) -> None:
    imported = await import_session(other, exported, RandomIds())
    assert (imported.session_id, imported.skipped, imported.damage) == ("s", [], None)
    assert await other.wire_events("s", limit=1000) == await store.wire_events("s", limit=1000)
    assert await other.session("s") == await store.session("s")
    assert await other.calls(session_id="s") == await store.calls(session_id="s")
    (name,) = (path.name for path in (exported / "blobs").iterdir())
    assert await other.blob(name) == b"before"
    await other.close()


async def test_taking_in_what_is_here_already_adds_nothing(
    store: SqliteStore, other: SqliteStore, exported: Path
) -> None:
    assert (await import_session(store, exported, RandomIds())).added == 0
    await import_session(other, exported, RandomIds())
    await other.append(entry("s", said("later"), run_id="r"))
    again = await import_session(other, exported, RandomIds())
    assert (again.session_id, again.added) == ("s", 0)
    await other.close()


async def test_where_the_id_is_taken_it_becomes_a_copy_with_nothing_open(other: SqliteStore, exported: Path) -> None:
    await other.append(entry("s", created(), said("msg_1"), started(), queued("msg_7", "run_7"), run_id="run_1"))
    imported = await import_session(other, exported, RandomIds())
    assert imported.session_id != "s"
    copied = await other.session(imported.session_id)
    assert copied is not None
    assert copied.origin is not None
    assert copied.origin["sessionId"] == "s"
    (settled,) = await other.calls(session_id=imported.session_id, pending=True)
    assert (settled.verdict, settled.resolution) == ("applied", "complete")
    assert await other.calls(session_id=imported.session_id, recovery=True) == []
    ended = [row for row in await other.calls(session_id=imported.session_id) if row.result_status == "cancelled"]
    assert len(ended) == 1
    own = {row.run_id for row in (await other.runs(session_id="s"))[0]}
    assert not own & {row.run_id for row in (await other.runs(session_id=imported.session_id))[0]}
    assert await other.damage(imported.session_id) is None
    again = await import_session(other, exported, RandomIds())
    assert (again.session_id, again.added) == (imported.session_id, 0)
    await other.close()
    assert (await doctor.check(other.path))["ok"] is True


@pytest.mark.parametrize(
    ("hurt", "at_seq"),
    [
        (lambda lines: [*lines[:4], lines[4].replace("529", "530"), *lines[5:]], 5),
        (lambda lines: [*lines[:4], *lines[5:]], 5),
        (lambda lines: lines[:-1], len(whole_history()) + 2),
        (
            lambda lines: [
                *lines[:4],
                lines[4].rsplit(',"hash"', 1)[0] + "}",
                lines[5].replace(":6,", ": 6,"),
                *lines[6:],
            ],
            6,
        ),
    ],
    ids=["changed", "missing", "cut", "written anew"],
)
async def test_a_history_that_is_not_what_was_written_is_refused_and_with_force_says_so(
    other: SqliteStore, exported: Path, hurt: object, at_seq: int
) -> None:
    file = exported / "events.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("".join(f"{line}\n" for line in hurt(lines)))  # type: ignore[operator]
    with pytest.raises(StandfastError) as raised:
        await import_session(other, exported, RandomIds())
    assert (raised.value.reason, raised.value.data) == ("HistoryDamaged", {"atSeq": at_seq})
    assert (await other.sessions())[0] == []
    forced = await import_session(other, exported, RandomIds(), force=True)
    damage = await other.damage(forced.session_id)
    assert damage is not None
    assert damage.at_seq == at_seq
    await other.close()


async def test_strangers_and_missing_files_are_told_apart(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await export_session(store, "nobody", tmp_path / "out")
    with pytest.raises(StandfastError) as raised:
        await import_session(store, tmp_path / "nowhere", RandomIds())
    assert raised.value.reason == "ImportFailed"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "theirs").touch()
    await store.append(entry("s", created()))
    with pytest.raises(StandfastError, match="not empty"):
        await export_session(store, "s", tmp_path / "full")


async def test_a_field_of_a_later_release_survives_the_journey(other: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(
        '{"seq":1,"atMs":1,"sessionId":"s","type":"session_created","v":1,"workspaceUri":"file:///w","shade":"blue"}\n'
        '{"seq":2,"atMs":2,"sessionId":"s","type":"moon_seen","v":3,"phase":0.5}\n'
    )
    assert (await import_session(other, tmp_path, RandomIds())).added == 2
    first, second = (text for _, text in await other.wire_events("s"))
    assert '"shade":"blue"' in first
    assert '"type":"moon_seen","v":3,"phase":0.5' in second
    await other.close()


# -- hurt files -------------------------------------------------------------------------------------------------------


def records(tmp_path: Path, data: bytes) -> tuple[list[object], list[tuple[int, int, str]]]:
    file = tmp_path / "log.jsonl"
    file.write_bytes(data)
    with file.open("rb") as stream:
        found = list(read_records(stream))
    assert file.read_bytes() == data
    values = [item.value["n"] for item in found if isinstance(item, Record)]
    return values, [(item.offset, item.length, item.what) for item in found if isinstance(item, Skipped)]


@pytest.mark.scenario("a08")
def test_a_cut_last_line_is_left_out_and_named(tmp_path: Path) -> None:
    whole = b"".join(b'{"type":"user_message","n":%d}\n' % n for n in range(200))
    values, skipped = records(tmp_path, whole + b'{"type":"assistant","mess')
    assert values == list(range(200))
    assert skipped == [(len(whole), 25, "cut")]


@pytest.mark.scenario("a09")
def test_a_block_of_zero_bytes_hides_nothing_behind_it(tmp_path: Path) -> None:
    values, skipped = records(
        tmp_path, b'{"type":"a","n":1}\n' + bytes(400) + b'{"type":"a","n":2}\n{"type":"a","n":3}\n'
    )
    assert values == [1, 2, 3]
    assert skipped == [(19, 400, "nul")]


@pytest.mark.scenario("a10")
def test_a_record_fused_with_the_half_of_another_is_read(tmp_path: Path) -> None:
    half = b'{"type":"tool_call","args":{"pa'
    values, skipped = records(tmp_path, b'{"type":"a","n":1}\n' + half + b'{"type":"a","n":2}{"type":"a","n":3}\n')
    assert values == [1, 2, 3]
    assert skipped == [(19, len(half), "broken")]


async def test_a_copy_of_streamed_text_is_whole(store: SqliteStore, other: SqliteStore, tmp_path: Path) -> None:
    await store.append(entry("s", created(), said(), started(), run_id="r"))
    for n in range(450):
        await store.append(entry("s", AssistantChunk(attempt=1, offset=n, text="x"), run_id="r"))
    await export_session(store, "s", tmp_path / "out")
    assert (await import_session(other, tmp_path / "out", RandomIds())).added == 453
    await other.close()


async def test_a_stored_content_that_is_not_what_was_written_is_refused_and_left_out_with_force(
    store: SqliteStore, other: SqliteStore, exported: Path
) -> None:
    [blob] = (exported / "blobs").iterdir()
    blob.write_bytes(b"befor")
    assert (await import_session(store, exported, RandomIds())).added == 0, "what is here is here"
    with pytest.raises(StandfastError) as raised:
        await import_session(other, exported, RandomIds())
    assert raised.value.reason == "HistoryDamaged" and blob.name in str(raised.value)
    assert (await other.sessions())[0] == []
    forced = await import_session(other, exported, RandomIds(), force=True)
    assert blob.name in forced.skipped[0]
    assert await other.blob(blob.name) is None
    await other.close()
