"""Order, cancellation, limits and endings of a connection (design.md "Transport"; ATK-51, ATK-52; d20, d22)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from standfast.daemon.compose import Daemon
from standfast.editor import handlers
from standfast.editor.answers import Answer
from standfast.editor.clients import Client
from standfast.editor.connection import IN_FLIGHT_MAX
from standfast.editor.core import Core
from standfast.editor.outbox import HELD_MAX
from wire.raw import Raw, connect, frame


class Gate:
    """Stands before a handler: counts who entered, and lets them on when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self.entered: list[Any] = []
        self.cancelled = 0
        self.open = asyncio.Event()
        self.news = asyncio.Event()
        real = handlers.HANDLERS[method]

        async def gated(core: Core, client: Client, params: Any) -> Answer:
            self.entered.append(params)
            self.news.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            return await real(core, client, params)

        monkeypatch.setitem(handlers.HANDLERS, method, gated)

    async def entries(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.entered) < count:
                self.news.clear()
                await self.news.wait()


async def session(raw: Raw, folder: Path, number: int = 1) -> str:
    made = await raw.ask(f"create {number}", "standfast/session/create", {"workspaceUri": folder.as_uri()})
    return made["session"]["sessionId"]


# -- order ------------------------------------------------------------------------------------------------------------


async def test_requests_of_one_session_are_answered_in_order_and_others_do_not_wait(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one, two = await session(raw, tmp_path, 1), await session(raw, tmp_path, 2)
    gate = Gate(monkeypatch, "standfast/session/rebind")
    raw.request("slow", "standfast/session/rebind", {"sessionId": one, "workspaceUri": tmp_path.as_uri()})
    raw.request("same session", "standfast/session/update", {"sessionId": one, "title": "later"})
    raw.request("other session", "standfast/session/update", {"sessionId": two, "title": "now"})
    await raw.answer("other session")
    raw.request("read", "standfast/session/list")
    listed = (await raw.answer("read"))["result"]["sessions"]
    assert {s["sessionId"]: s["title"] for s in listed} == {one: "", two: "now"}
    gate.open.set()
    await raw.answer("same session")
    order = [m["id"] for m in raw.heard if m.get("id") in ("slow", "same session")]
    assert order == ["slow", "same session"]


async def test_a_cancelled_place_in_the_order_lets_the_next_one_wait_on(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one = await session(raw, tmp_path)
    gate = Gate(monkeypatch, "standfast/session/rebind")
    raw.request("first", "standfast/session/rebind", {"sessionId": one, "workspaceUri": tmp_path.as_uri()})
    await gate.entries(1)
    raw.request("second", "standfast/session/update", {"sessionId": one, "title": "second"})
    raw.request("third", "standfast/session/update", {"sessionId": one, "title": "third"})
    raw.notify("$/cancelRequest", {"id": "second"})
    assert (await raw.answer("second"))["error"]["code"] == -32800
    gate.open.set()
    assert (await raw.answer("third"))["result"]["session"]["title"] == "third"
    order = [m["id"] for m in raw.heard if m.get("id") in ("first", "third")]
    assert order == ["first", "third"]


# -- cancellation -----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("d20")
async def test_a_hundred_requests_cancelled_at_once_never_run(
    parts: Daemon, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize([tmp_path.as_uri()])
    one = await session(raw, tmp_path)
    uri = (tmp_path / "doc.txt").as_uri()
    raw.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "t", "version": 0, "text": ""}})
    gate = Gate(monkeypatch, "standfast/session/events")
    messages: list[Any] = [
        {"jsonrpc": "2.0", "id": n, "method": "standfast/session/events", "params": {"sessionId": one}}
        for n in range(100)
    ]
    messages += [{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": n}} for n in range(99)]
    raw.send(*messages)
    for version in range(1, 501):
        change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": f"v{version}"}]}
        raw.notify("textDocument/didChange", change)
    codes = [(await raw.answer(n))["error"]["code"] for n in range(99)]
    assert set(codes) == {-32800}
    await gate.entries(1)
    await raw.ask("ping", "standfast/daemon/status")
    assert len(gate.entered) <= 2
    gate.open.set()
    assert (await raw.answer(99))["result"]["events"]
    document = next(iter(next(iter(parts.core.clients)).documents.values()))
    assert (document.version, document.text) == (500, "v500")


async def test_a_reader_is_stopped_half_way_and_a_change_is_carried_to_its_end(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one = await session(raw, tmp_path)
    reads = Gate(monkeypatch, "standfast/session/events")
    changes = Gate(monkeypatch, "standfast/session/rebind")
    raw.request("read", "standfast/session/events", {"sessionId": one})
    raw.request("change", "standfast/session/rebind", {"sessionId": one, "workspaceUri": tmp_path.as_uri()})
    await reads.entries(1)
    await changes.entries(1)
    raw.notify("$/cancelRequest", {"id": "read"})
    raw.notify("$/cancelRequest", {"id": "change"})
    assert (await raw.answer("read"))["error"]["code"] == -32800
    assert reads.cancelled == 1
    changes.open.set()
    assert "result" in await raw.answer("change")


async def test_an_id_that_was_cancelled_may_be_used_again(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one = await session(raw, tmp_path)
    gate = Gate(monkeypatch, "standfast/session/events")
    raw.request(7, "standfast/session/events", {"sessionId": one})
    await gate.entries(1)
    raw.notify("$/cancelRequest", {"id": 7})
    raw.request(7, "standfast/session/events", {"sessionId": one})
    await gate.entries(2)
    gate.open.set()
    await raw.ask("ping", "standfast/daemon/status")
    await raw.until(lambda m: m.get("id") == 7 and "result" in m)
    kinds = ["error" if "error" in m else "result" for m in raw.heard if m.get("id") == 7]
    assert kinds == ["error", "result"]


@pytest.mark.scenario("ATK-51")
async def test_an_id_in_flight_is_refused_and_the_first_one_is_still_answered(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one = await session(raw, tmp_path)
    gate = Gate(monkeypatch, "standfast/session/events")
    raw.request(1, "standfast/session/events", {"sessionId": one})
    await gate.entries(1)
    raw.request(1, "standfast/session/list")
    assert (await raw.until(lambda m: m.get("id") == 1))["error"]["code"] == -32600
    gate.open.set()
    await raw.until(lambda m: m.get("id") == 1 and "result" in m)
    assert len(gate.entered) == 1


async def test_the_two_directions_have_ids_of_their_own(parts: Daemon, raw: Raw, tmp_path: Path) -> None:
    """Our request 1 and the client's request 1 are two; a response settles ours only."""
    await raw.initialize(ours=False, capabilities={"window": {"workDoneProgress": True}})
    client = next(iter(parts.core.clients))
    asking = asyncio.create_task(client.request("window/workDoneProgress/create", {"token": "t"}))
    theirs = await raw.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    raw.request(theirs["id"], "standfast/session/list")
    await raw.answer(theirs["id"])
    assert not asking.done()
    raw.send({"jsonrpc": "2.0", "id": theirs["id"], "result": None})
    assert await asyncio.wait_for(asking, 20) is None


# -- endings ----------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("d22")
async def test_a_response_after_shutdown_is_still_taken(parts: Daemon, raw: Raw) -> None:
    await raw.initialize(ours=False)
    client = next(iter(parts.core.clients))
    asking = asyncio.create_task(client.request("workspace/applyEdit", {"edit": {}}))
    theirs = await raw.until(lambda m: m.get("method") == "workspace/applyEdit")
    assert await raw.ask("bye", "shutdown") is None
    raw.send({"jsonrpc": "2.0", "id": theirs["id"], "result": {"applied": True}})
    raw.notify("exit")
    assert await asyncio.wait_for(asking, 20) == {"applied": True}
    await raw.rest()
    await raw.served()
    assert len(parts.core.clients) == 0


@pytest.mark.scenario("d22")
@pytest.mark.parametrize("ending", ["shutdown and exit", "exit", "end of stream", "cut in a message"])
async def test_however_a_client_leaves_only_its_connection_ends(parts: Daemon, raw: Raw, ending: str) -> None:
    async with connect(parts) as other:
        await other.initialize()
        await raw.initialize()
        if ending == "shutdown and exit":
            await raw.ask("bye", "shutdown")
        if "exit" in ending:
            raw.notify("exit")
            await raw.rest()
        elif ending == "cut in a message":
            raw.send_raw(frame({"jsonrpc": "2.0", "id": 1, "method": "x"})[:-3])
            await raw.hang_up()
        else:
            raw.writer.write_eof()
            await raw.rest()
        await raw.served()
        assert len(parts.core.clients) == 1
        await other.ask("ping", "standfast/daemon/status")


@pytest.mark.scenario("ATK-52")
async def test_a_message_that_is_begun_and_not_finished_closes_the_connection(parts: Daemon) -> None:
    async with connect(parts, message_s=0.05) as slow:
        slow.send_raw(b"Content-Le")
        heard = await slow.rest()
    assert [m["error"]["code"] for m in heard] == [-32600]


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("ATK-52")
async def test_a_flood_of_requests_is_answered_and_bounded(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await raw.initialize()
    one = await session(raw, tmp_path)
    gate = Gate(monkeypatch, "standfast/session/rebind")
    many = IN_FLIGHT_MAX + 300
    params = {"sessionId": one, "workspaceUri": tmp_path.as_uri()}
    raw.send(
        *[{"jsonrpc": "2.0", "id": n, "method": "standfast/session/rebind", "params": params} for n in range(many)]
    )
    refused = [(await raw.answer(n))["error"] for n in range(IN_FLIGHT_MAX, many)]
    assert {error["data"]["reason"] for error in refused} == {"Overloaded"}
    gate.open.set()
    for n in range(IN_FLIGHT_MAX):
        assert "result" in await raw.answer(n)


@pytest.mark.scenario("ATK-52")
async def test_a_client_that_does_not_read_is_dropped_and_the_others_notice_nothing(parts: Daemon, raw: Raw) -> None:
    await raw.initialize()
    stalled = next(iter(parts.core.clients))
    raw.stop_reading()
    async with connect(parts) as other:
        await other.initialize()
        piece, most, sent = b'{"text":"%b"}' % (b"x" * 100_000), 0, 0
        while not stalled.outbox.dropped:
            stalled.notify_json("standfast/delta", piece)
            most, sent = max(most, stalled.outbox.held), sent + len(piece)
            if sent % 50 == 0:
                await asyncio.sleep(0)
            assert sent < 8 * HELD_MAX
        await other.ask("ping", "standfast/daemon/status")
        raw.read_on()
        await raw.rest()
        await raw.served()
    assert most <= HELD_MAX + 2 * len(piece)
    assert stalled.outbox.held == 0 or stalled.gone


@pytest.mark.scenario("ATK-52")
async def test_a_thousand_connections_leave_nothing_behind(parts: Daemon, tmp_path: Path) -> None:
    left: list[weakref.ref[Client]] = []

    async def visit() -> None:
        async with connect(parts) as raw:
            await raw.initialize([tmp_path.as_uri()], capabilities={"window": {"workDoneProgress": True}})
            await raw.ask("list", "standfast/session/list")
            left.append(weakref.ref(next(iter(parts.core.clients))))

    for _ in range(20):
        await visit()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        await visit()
    gc.collect()
    assert sum(1 for client in left if client() is not None) <= 1
    assert len(gc.get_objects()) - before < 5_000
    assert len(parts.core.clients) == 0


async def test_a_defect_of_a_handler_is_an_answer_without_its_text(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(core: Core, client: Client, params: Any) -> Answer:
        raise RuntimeError("sk-ant-secret")

    monkeypatch.setitem(handlers.HANDLERS, "standfast/session/list", broken)
    await raw.initialize()
    raw.request(1, "standfast/session/list")
    error = (await raw.answer(1))["error"]
    assert error["code"] == -32603 and error["data"] == {"reason": "InternalError"}
    assert "sk-ant" not in str(error)
    await raw.ask("ping", "standfast/daemon/status")
