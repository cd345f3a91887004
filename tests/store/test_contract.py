"""What any store must do (R3): one class of tests, run on each implementation."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest
from histories import W, call, created, entry, queued, result, said, started, whole_history

from standfast.errors import NotFound, StoreError
from standfast.events.encode import chain
from standfast.events.types import (
    AssistantChunk,
    Fact,
    MessageDequeued,
    MessageEdited,
    PermissionRequested,
    PermissionResolved,
    RunFinished,
    SeenFile,
    SessionArchived,
    TextContent,
    ToolRecovery,
    ToolStarted,
    Usage,
    UserMessage,
)
from standfast.projections.rows import MessageRow, SeenRow, Statistics
from standfast.store.base import Entry, Store


class StoreContract:
    """Held by every implementation; a subclass gives the fixture `store`."""

    @pytest.mark.requirement("R3.2")
    async def test_events_are_numbered_without_a_gap_and_chained_over_their_bytes(self, store: Store) -> None:
        first = await store.append(entry("s", created(), said(), run_id="r"))
        second = await store.append(entry("s", started(), run_id="r"))
        events = [*first, *second]
        assert [event.seq for event in events] == [1, 2, 3]
        previous = "s"
        for event in events:
            assert event.hash == chain(previous, event.body)
            previous = event.hash
        assert await store.events("s") == events
        assert await store.event_hash("s", 2) == events[1].hash
        assert await store.event_hash("s", 9) is None
        assert await store.damage("s") is None

    async def test_every_type_of_event_is_read_back_as_it_was_stored(self, store: Store) -> None:
        pairs = whole_history()
        stored = await store.append(Entry("s", pairs))
        assert [event.fact for event in stored] == [fact for _, fact in pairs]
        assert await store.events("s", limit=1000) == stored
        assert await store.wire_events("s", limit=1000) == [(event.seq, event.wire) for event in stored]

    async def test_pages_are_ascending_whichever_way_they_are_asked_for(self, store: Store) -> None:
        await store.append(entry("s", created(), *(said(f"m{n}") for n in range(9))))

        async def seqs(**page: int) -> list[int]:
            return [event.seq for event in await store.events("s", **page)]

        assert await seqs(limit=3) == [8, 9, 10]
        assert await seqs(before_seq=8, limit=3) == [5, 6, 7]
        assert await seqs(after_seq=2, limit=3) == [3, 4, 5]
        assert await seqs(after_seq=10) == []
        assert [event.seq for event in await store.events("s", types=["session_created"])] == [1]

    async def test_a_history_begins_with_session_created(self, store: Store) -> None:
        with pytest.raises(NotFound, match="no session s"):
            await store.append(entry("s", said()))
        assert await store.session("s") is None

    async def test_of_many_at_once_one_bad_entry_fails_alone(self, store: Store) -> None:
        await store.append(entry("s", created()))
        entries = [entry("s", said(f"m{n}")) for n in range(20)]
        entries.insert(7, entry("unknown", said()))
        answers = await asyncio.gather(*(store.append(one) for one in entries), return_exceptions=True)
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        assert [type(error) for error in failed] == [NotFound]
        assert isinstance(answers[7], NotFound)
        assert [event.seq for event in await store.events("s")] == list(range(1, 22))

    async def test_an_entry_is_stored_whole_or_not_at_all(self, store: Store) -> None:
        await store.append(entry("s", created()))
        with pytest.raises(StoreError) as raised:
            await store.append(
                entry(
                    "s",
                    said(),
                    UserMessage(message_id="x", client_message_id="y", content=[TextContent(text="z")]),
                    _unstorable(),
                )
            )
        assert raised.value.reason == "EventNotStorable"
        assert [event.seq for event in await store.events("s")] == [1]

    @pytest.mark.requirement("R3.1")
    async def test_the_session_row_follows_its_events(self, store: Store) -> None:
        stored = await store.append(Entry("s", whole_history()))
        row = await store.session("s")
        assert row is not None
        assert (row.workspace_uri, row.title, row.status, row.queue_held) == ("file:///v", "t", "archived", False)
        assert (row.last_run_id, row.last_run_status) == ("run_3", "succeeded")
        assert row.plan == {
            "goal": "g",
            "steps": [{"text": "one", "status": "completed"}, {"text": "two", "status": "pending"}],
        }
        assert row.goal is None
        assert (row.head_seq, row.head_hash, row.updated_at_ms) == (stored[-1].seq, stored[-1].hash, stored[-1].at_ms)

    async def test_sessions_are_listed_newest_first_by_page_folder_state_and_words(self, store: Store) -> None:
        for n in range(5):
            await store.append(entry(f"s{n}", created(W if n else "file:///other", title=f"title {n}")))
        await store.append(entry("s1", said(text="about parsers"), run_id="r"))
        await store.append(entry("s2", SessionArchived()))
        page, cursor = await store.sessions(limit=3)
        assert [row.session_id for row in page] == ["s1", "s4", "s3"]
        rest, end = await store.sessions(limit=3, cursor=cursor)
        assert ([row.session_id for row in rest], end) == (["s0"], None)
        assert [row.session_id for row in (await store.sessions(workspace_uris=["file:///other"]))[0]] == ["s0"]
        assert [row.session_id for row in (await store.sessions(status="archived"))[0]] == ["s2"]
        assert [row.session_id for row in (await store.sessions(query="PARSERS"))[0]] == ["s1"]
        assert [row.session_id for row in (await store.sessions(query="title_4"))[0]] == []
        assert (await store.sessions(workspace_uris=[]))[0] == []
        with pytest.raises(StoreError, match="first page"):
            await store.sessions(cursor="nonsense")

    @pytest.mark.requirement("R3.3")
    async def test_runs_are_counted_and_averaged_over_all_that_match_not_over_the_page(self, store: Store) -> None:
        await store.append(entry("s", created()))
        for n in range(4):
            await store.append(entry("s", said(f"m{n}"), started(), run_id=f"r{n}"))
            status = "failed" if n == 3 else "succeeded"
            await store.append(
                entry("s", RunFinished(status=status, usage=Usage(input_tokens=2, output_tokens=1)), run_id=f"r{n}")
            )
        runs, cursor = await store.runs(limit=2)
        assert [run.run_id for run in runs] == ["r3", "r2"]
        assert [run.run_id for run in (await store.runs(limit=2, cursor=cursor))[0]] == ["r1", "r0"]
        assert [run.run_id for run in (await store.runs(status="failed", workspace_uris=[W]))[0]] == ["r3"]
        counts = Statistics(4, {"succeeded": 3, "failed": 1}, 1.0, 8, 4)
        assert await store.run_statistics(session_id="s") == counts
        assert await store.run_statistics(workspace_uris=["file:///none"]) == Statistics()

    @pytest.mark.requirement("R7.1")
    async def test_a_run_without_an_end_is_found_without_reading_events(self, store: Store) -> None:
        await store.append(entry("s", created(), said(), started(), run_id="r"))
        (run,) = await store.unfinished_runs()
        assert (run.run_id, run.status, run.first_seq, run.worker_id) == ("r", "running", 2, "w")
        await store.append(entry("s", RunFinished(status="interrupted"), run_id="r"))
        assert await store.unfinished_runs() == []
        assert await store.sessions_with_open_matters([W]) == ["s"]
        await store.append(entry("s", said("m2"), started("resume", "r"), run_id="r2"))
        resuming = await store.resuming_run("r")
        assert resuming is not None
        assert resuming.run_id == "r2"
        assert await store.resuming_run("r2") is None

    @pytest.mark.requirement("R9.3")
    async def test_a_call_is_pending_until_its_first_result(self, store: Store) -> None:
        await store.append(entry("s", created(), said(), started(), call("c1"), call("c2"), run_id="r"))
        await store.append(entry("s", ToolStarted(call_id="c1"), result("c1", "first"), run_id="r"))
        await store.append(entry("s", result("c1", status="error"), run_id="r"))
        assert [row.call_id for row in await store.calls(run_id="r", pending=True)] == ["c2"]
        done = await store.call("c1")
        assert done is not None
        assert (done.state, done.result_status) == ("done", "ok")

    async def test_a_permission_is_open_from_the_question_to_the_answer(self, store: Store) -> None:
        asked = PermissionRequested(call_id="c1", digest="d", summary="Write", risks=["starts programs"], allow_key="k")
        await store.append(entry("s", created(), said(), started(), call("c1"), asked, run_id="r"))
        row = await store.call("c1")
        assert row is not None
        assert (row.state, row.digest, row.summary, row.risks, row.allow_key) == (
            "asked",
            "d",
            "Write",
            ["starts programs"],
            "k",
        )
        assert await store.sessions_with_open_matters([W]) == ["s"]
        answer = PermissionResolved(call_id="c1", decision="allowSession", by="me", allow_key="k")
        await store.append(entry("s", answer, run_id="r"))
        assert await store.allowances("s") == {"k"}
        assert await store.sessions_with_open_matters([W]) == []

    async def test_what_was_uncertain_leaves_recovery_when_settled_and_the_next_run_starts(self, store: Store) -> None:
        await store.append(entry("s", created(), said(), started(), call("c1"), call("c2"), run_id="r"))
        for name in ("c1", "c2"):
            await store.append(
                entry("s", ToolStarted(call_id=name), ToolRecovery(call_id=name, status="uncertain"), run_id="r")
            )
        await store.append(
            entry(
                "s",
                ToolRecovery(call_id="c1", status="applied"),
                ToolRecovery(call_id="c2", status="unknown"),
                run_id="r",
            )
        )
        assert [row.verdict for row in await store.calls(session_id="s", recovery=True)] == ["applied", "unknown"]
        await store.append(entry("s", started("resume", "r"), run_id="r2"))
        assert [row.call_id for row in await store.calls(session_id="s", recovery=True)] == ["c2"]

    @pytest.mark.requirement("R13.1")
    async def test_queued_messages_keep_their_order_and_move(self, store: Store) -> None:
        await store.append(entry("s", created(), *(queued(f"m{n}", f"r{n}") for n in range(3))))
        await store.append(entry("s", MessageEdited(message_id="m2", text="first now", position=0)))
        waiting = await store.messages(session_id="s", state="queued")
        assert [(row.message_id, row.position, row.text) for row in waiting] == [
            ("m2", 0, "first now"),
            ("m0", 1, "later"),
            ("m1", 2, "later"),
        ]
        await store.append(entry("s", MessageDequeued(message_id="m0", reason="removed")))
        await store.append(
            entry(
                "s",
                MessageDequeued(message_id="m2", reason="started"),
                said("m2", "first now"),
                started("queue"),
                run_id="r2",
            )
        )
        assert [(row.message_id, row.position) for row in await store.messages(session_id="s", state="queued")] == [
            ("m1", 0)
        ]
        removed, running = await store.run("r0"), await store.run("r2")
        assert removed is not None
        assert running is not None
        assert (removed.status, running.status, running.trigger) == ("cancelled", "running", "queue")
        sent = await store.message("s", "client m2")
        assert sent is not None
        assert (sent.state, sent.seq, sent.run_id) == ("sent", 8, "r2")

    @pytest.mark.requirement("R3.5")
    async def test_what_the_person_wrote_is_found_over_all_sessions_newest_first(self, store: Store) -> None:
        for n in range(3):
            await store.append(entry(f"s{n}", created(f"file:///w{n}"), said(f"m{n}", f"100% of {n}"), run_id="r"))
        assert [row.text for row in await store.messages()] == ["100% of 2", "100% of 1", "100% of 0"]
        assert [row.message_id for row in await store.messages(query="0% of 1")] == ["m1"]
        assert [row.message_id for row in await store.messages(workspace_uris=["file:///w0"], limit=5)] == ["m0"]
        only = await store.message("s1", "client m1")
        assert only == MessageRow("m1", "s1", "client m1", "r", "100% of 1", "sent", only.at_ms if only else 0, 0, 2)

    @pytest.mark.requirement("R11.2")
    async def test_the_version_last_seen_of_a_file_replaces_the_one_before(self, store: Store) -> None:
        await store.append(entry("s", created(), call("c"), run_id="r"))
        for version in ("v1", "v2"):
            seen = [SeenFile(path="a.py", version=version, whole=version == "v2")]
            await store.append(entry("s", result("c", seen=seen), run_id="r"))
        assert await store.seen("s") == {"a.py": SeenRow("s", "a.py", "v2", True)}

    async def test_bytes_are_kept_by_their_content(self, store: Store) -> None:
        data = bytes(range(256))
        name = await store.put_blob(data)
        assert name == sha256(data).hexdigest()
        assert await store.put_blob(data) == name
        assert await store.blob(name) == data
        assert await store.blob("0" * 64) is None

    async def test_trust_is_given_and_taken(self, store: Store) -> None:
        assert not await store.trusted(W)
        await store.set_trusted(W, "i", trusted=True)
        assert await store.trusted(W)
        await store.set_trusted(W, "i", trusted=False)
        assert not await store.trusted(W)

    @pytest.mark.scenario("a38")
    async def test_a_lone_surrogate_is_replaced_once_on_the_way_in(self, store: Store) -> None:
        (_, event) = await store.append(entry("s", created(), result("c", "x\ud800y"), run_id="r"))
        assert event.fact == result("c", "x\ufffdy")
        assert (await store.events("s"))[1] == event

    @pytest.mark.requirement("R4.3")
    async def test_cancelling_who_waits_cancels_no_write(self, store: Store) -> None:
        await store.append(entry("s", created()))
        waiting = asyncio.ensure_future(store.append(entry("s", said(), run_id="r")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await store.append(entry("s", AssistantChunk(attempt=1, offset=0, text="x"), run_id="r"))
        assert [event.fact.type for event in await store.events("s")] == [
            "session_created",
            "user_message",
            "assistant_chunk",
        ]


def _unstorable() -> Fact:
    return result("c").model_copy(update={"content": object()})


class TestSqliteStore(StoreContract):
    """The embedded store. Its fixture is in conftest.py."""

    async def test_closing_stores_what_was_asked_for(self, store: Store, path: Path) -> None:
        await store.append(entry("s", created()))
        waiting = [asyncio.ensure_future(store.append(entry("s", said(f"m{n}")))) for n in range(50)]
        await asyncio.sleep(0)
        await store.close()
        assert sorted(event.seq for stored in await asyncio.gather(*waiting) for event in stored) == list(range(2, 52))
        with pytest.raises(StoreError, match="closed"):
            await store.append(entry("s", said()))
        assert path.exists()
