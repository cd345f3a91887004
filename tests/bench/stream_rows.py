"""Turns and streamed text, through a real daemon from a model on loopback, beside a bare reader of the same stream."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from bench.measure import Row, at_most, fdatasync_ms, median, percentile, ratio_at_most
from bench.place import Place, model, place
from editor.desk import event, number
from standfast.run.attempt import COALESCE_S
from wire.raw import Json, Raw

DELTAS = 5000
COMMITS_OF_A_TURN = 4
"""run_started with user_message, model_request, assistant_message, run_finished."""
STREAMS = 8
READER = Path(__file__).parent / "stream_reader.py"
RATE = 500


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    with model() as port, place(tmp / "stream", port) as here:
        async with here.client() as raw:
            await raw.initialize([here.folder.as_uri()])
            for _ in range(3):
                await _turn(raw, await _session(here, raw), "warm up")
            disk = median(fdatasync_ms(tmp))
            turns = [await _turn(raw, await _session(here, raw), "turn") for _ in range(10 if quick else 40)]
            bare = [await _bare(port, "turn") for _ in range(10 if quick else 40)]
            added = median(turns) - median(bare)
            limit = 5 + COMMITS_OF_A_TURN * disk
            yield Row(
                "added to a text turn",
                added,
                "ms",
                "fdatasync",
                disk,
                f"≤ 5 ms + {COMMITS_OF_A_TURN} commits",
                at_most(limit),
            )
            bare_burst = median([await _bare(port, f"burst {DELTAS}") for _ in range(3)])
            async for row in _bursts(here, raw, bare_burst):
                yield row
            async for row in _edits(here, raw, disk, 10 if quick else 30):
                yield row
        async for row in _paced(here, quick):
            yield row
        async for row in _eight(here, quick):
            yield row


async def _bursts(here: Place, raw: Raw, bare: float) -> AsyncGenerator[Row]:
    for clients in (1, 8):
        async with contextlib.AsyncExitStack() as stack:
            session_id = await _session(here, raw)
            others = [await stack.enter_async_context(here.client()) for _ in range(clients - 1)]
            for other in others:
                await other.initialize()
                await other.ask(number(), "standfast/session/attach", {"sessionId": session_id})
            took: list[float] = []
            used: list[float] = []
            for _ in range(3):
                before = here.cpu_s()
                begin = time.perf_counter()
                run_id = await _start(raw, session_id, f"burst {DELTAS}")
                await asyncio.gather(*(_end(client, run_id) for client in (raw, *others)))
                took.append((time.perf_counter() - begin) * 1000)
                used.append((here.cpu_s() - before) * 1000)
                said = await event(raw, "assistant_message", runId=run_id)
                assert said["blocks"][0]["text"].count("word") == DELTAS
            to = "one client" if clients == 1 else f"{clients} clients"
            yield Row(f"{DELTAS} deltas to {to}", median(took), "ms", "a bare reader", bare, "≤ 400 ms", at_most(400))
            yield Row(
                f"{DELTAS} deltas to {to}, CPU of the daemon", median(used), "ms", goal="≤ 400 ms", check=at_most(400)
            )


async def _edits(here: Place, raw: Raw, disk: float, count: int) -> AsyncGenerator[Row]:
    (here.folder / "a.txt").write_text("value 0\n")
    took: list[float] = []
    for n in range(count):
        session_id = await _session(here, raw)
        run_id = await _start(raw, session_id, f"edit a.txt {n} {n + 1}")
        await event(raw, "tool_call", runId=run_id)
        begin = time.perf_counter()
        await event(raw, "tool_result", runId=run_id)
        took.append((time.perf_counter() - begin) * 1000)
        await _end(raw, run_id)
    assert (here.folder / "a.txt").read_text() == f"value {count}\n"
    yield Row("edit, from the call to its result", median(took), "ms", "fdatasync", disk, "≤ 15 ms", at_most(15))


async def _paced(here: Place, quick: bool) -> AsyncGenerator[Row]:
    """Delay of streamed text; then the same while another client has stopped to read."""
    count = 300 if quick else 1000
    limit = COALESCE_S * 1000 + 5
    async with here.client() as raw, here.client() as stalled:
        await raw.initialize()
        session_id = await _session(here, raw)
        free = await _delays(raw, session_id, f"paced {count} 200")
        p95 = percentile(free, 0.95)
        yield Row("delay of a delta, p50", median(free), "ms", "coalescing", COALESCE_S * 1000)
        yield Row(
            "delay of a delta, p95", p95, "ms", "coalescing", COALESCE_S * 1000, "≤ coalescing + 5 ms", at_most(limit)
        )
        await stalled.initialize()
        await stalled.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        stalled.stop_reading()
        burst = await _start(raw, session_id, "burst 20000")
        await _end(raw, burst)
        memory = here.memory_mb()
        beside = percentile(await _delays(raw, session_id, f"paced {count} 200"), 0.95)
        yield Row(
            "the same beside a client that does not read, p95",
            beside,
            "ms",
            "undisturbed",
            p95,
            "≤ 1.5 ×",
            ratio_at_most(1.5),
        )
        yield Row("memory with 20,000 deltas unread", memory, "MB")


async def _eight(here: Place, quick: bool) -> AsyncGenerator[Row]:
    """Eight sessions stream; a ninth client asks something small all the time: how long the loop lets it wait."""
    count = RATE * (2 if quick else 6)
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(here.client()) for _ in range(STREAMS)]
        for client in clients:
            await client.initialize()
        session_ids = [await _session(here, client) for client in clients]
        asker = await stack.enter_async_context(here.client())
        await asker.initialize()
        quiet = await _pings(asker, asyncio.sleep(1))
        before = here.cpu_s()
        streaming = asyncio.gather(
            *(_delays(c, s, f"paced {count} {RATE}") for c, s in zip(clients, session_ids, strict=True))
        )
        waits = await _pings(asker, streaming)
        delays = [delay for one in await streaming for delay in one]
        used = (here.cpu_s() - before) * 1e6 / (count * STREAMS)
        limit = COALESCE_S * 1000 + 5
        alone = await asyncio.to_thread(_reader_alone, here.port, count)
        yield Row(
            f"{STREAMS} × {RATE} deltas a second, CPU of the daemon a delta", used, "µs", "the reader alone", alone,
            "≤ 1.6 ×", ratio_at_most(1.6),
        )  # fmt: skip
        yield Row(
            f"{STREAMS} × {RATE} deltas a second, delay p99",
            percentile(delays, 0.99),
            "ms",
            "coalescing",
            COALESCE_S * 1000,
            "≤ coalescing + 5 ms",
            at_most(limit),
        )
        yield Row(
            "a small question meanwhile, p99",
            percentile(waits, 0.99),
            "ms",
            "with nothing else, p99",
            percentile(quiet, 0.99),
            "≤ 20 ms",
            at_most(20),
        )


async def _pings(raw: Raw, meanwhile: Awaitable[object]) -> list[float]:
    work = asyncio.ensure_future(meanwhile)
    took: list[float] = []
    while not work.done():
        begin = time.perf_counter()
        await raw.ask(number(), "standfast/daemon/status")
        took.append((time.perf_counter() - begin) * 1000)
        raw.heard.clear()
        await asyncio.sleep(0.01)
    return took


# -- steps ------------------------------------------------------------------------------------------------------------


async def _session(here: Place, raw: Raw) -> str:
    raw.heard.clear()
    made = await raw.ask(number(), "standfast/session/create", {"workspaceUri": here.folder.as_uri(), "mode": "auto"})
    session_id: str = made["session"]["sessionId"]
    await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
    return session_id


async def _start(raw: Raw, session_id: str, text: str) -> str:
    raw.heard.clear()
    said = {"sessionId": session_id, "text": text, "clientMessageId": number()}
    return (await raw.ask(number(), "standfast/run/start", said))["runId"]


async def _end(raw: Raw, run_id: str) -> None:
    ended = await event(raw, "run_finished", runId=run_id)
    assert ended["status"] == "succeeded", ended


async def _turn(raw: Raw, session_id: str, text: str) -> float:
    begin = time.perf_counter()
    await _end(raw, await _start(raw, session_id, text))
    return (time.perf_counter() - begin) * 1000


async def _delays(raw: Raw, session_id: str, text: str) -> list[float]:
    """From the model's sending of each delta to its arrival here, ms."""
    run_id = await _start(raw, session_id, text)
    found: list[float] = []
    rest = ""

    def take(message: Json) -> bool:
        nonlocal rest
        params = message.get("params", {})
        if message.get("method") == "standfast/delta" and params.get("runId") == run_id:
            now = time.monotonic_ns()
            *whole, rest = (rest + params["text"]).split("\n")
            found.extend((now - int(sent)) / 1e6 for sent in whole)
        ended = params.get("event", {})
        return ended.get("type") == "run_finished" and ended.get("runId") == run_id

    await _read_until(raw, take)
    return found


async def _read_until(raw: Raw, done: Callable[[Json], bool]) -> None:
    heard = list(raw.heard)
    raw.heard.clear()
    for message in heard:
        if done(message):
            return
    while (message := await raw.next()) is not None:
        raw.heard.clear()
        if done(message):
            return
    raise AssertionError("the connection ended")


def _reader_alone(port: int, count: int) -> float:
    """µs of CPU a delta."""
    words = [sys.executable, str(READER), *map(str, (port, STREAMS, count, RATE))]
    return float(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


async def _bare(port: int, text: str) -> float:
    """The least there is: one request, its lines read to the end."""

    def read() -> float:
        begin = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        body = json.dumps({"messages": [{"role": "user", "content": text}]})
        connection.request("POST", "/v1/messages", body)
        response = connection.getresponse()
        while response.read1(65536):
            pass
        connection.close()
        return (time.perf_counter() - begin) * 1000

    return await asyncio.to_thread(read)
