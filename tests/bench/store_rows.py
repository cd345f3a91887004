"""Durable appends beside raw ones; long histories, many sessions and missed events through a real daemon."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from bench.measure import Row, at_most, fdatasync_ms, median, ratio_at_least, ratio_at_most
from bench.place import place
from editor.desk import number
from standfast.clock import SystemClock
from standfast.events.entry import Entry
from standfast.events.types import AssistantChunk, PlanUpdated, SessionCreated
from standfast.store.sqlite import SqliteStore
from support.daemon import places
from wire.raw import Raw, frame

CLOCK = SystemClock()
AT_ONCE = 2000
MISSED = 100_000
SIDE_BY_SIDE = 4
"""Pages that a client asks for at a time."""
SESSIONS = 10_000
TEXT = "x" * 180
"""About 300 bytes an event as stored."""


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    async for row in _appends(tmp / "appends", 100 if quick else 400):
        yield row
    sizes = [1000, 10_000, 100_000] if quick else [1000, 10_000, 100_000, 1_000_000]
    async for row in _histories(tmp / "histories", sizes):
        yield row
    async for row in _lists(tmp / "lists"):
        yield row


async def _appends(tmp: Path, count: int) -> AsyncGenerator[Row]:
    tmp.mkdir(mode=0o700)
    store = await SqliteStore.open(tmp / "bench.db", CLOCK)
    fact = PlanUpdated(goal=TEXT, steps=[])
    try:
        for sessions in (1, 8, 64):
            ids = [f"ses_{sessions}_{n}" for n in range(sessions)]
            for session_id in ids:
                await store.append(_created(session_id))
            raw = fdatasync_ms(tmp, 200)
            each = max(20, count // sessions)
            took: list[float] = []

            async def write(session_id: str, each: int = each, took: list[float] = took) -> None:
                for _ in range(each):
                    begin = time.perf_counter()
                    await store.append(Entry(session_id, [(None, fact)]))
                    took.append((time.perf_counter() - begin) * 1000)

            begin = time.perf_counter()
            await asyncio.gather(*(write(session_id) for session_id in ids))
            rate = each * sessions / (time.perf_counter() - begin)
            if sessions == 1:
                yield Row(
                    "durable append, 1 session, p50",
                    median(took),
                    "ms",
                    "fdatasync p50",
                    median(raw),
                    "≤ 2.0 ×",
                    ratio_at_most(2.0),
                )
            else:
                goal = 1.8 if sessions == 8 else 2.0
                yield Row(
                    f"durable appends, {sessions} sessions",
                    rate,
                    "/s",
                    "fdatasync",
                    1000 * len(raw) / sum(raw),
                    f"≥ {goal} ×",
                    ratio_at_least(goal),
                )
    finally:
        await store.close()


def _created(session_id: str, title: str = "") -> Entry:
    return Entry(session_id, [(None, SessionCreated(workspace_uri="file:///nowhere", title=title))])


async def _fill(tmp: Path, histories: dict[str, int]) -> None:
    """Histories of these lengths, in the store that the daemon will open."""
    path = places(tmp / "home").store
    path.parent.mkdir(mode=0o700, parents=True)
    store = await SqliteStore.open(path, CLOCK)
    try:
        for session_id, length in histories.items():
            await store.append(_created(session_id))
            for start in range(1, length, AT_ONCE):
                several = range(start, min(length, start + AT_ONCE))
                facts = [(None, AssistantChunk(attempt=1, offset=n, text=TEXT)) for n in several]
                await store.append(Entry(session_id, facts))
        await store.settle()
    finally:
        await store.close()


async def _histories(tmp: Path, sizes: list[int]) -> AsyncGenerator[Row]:
    missed = {"ses_missed": MISSED + 1}
    await _fill(tmp, {**{f"ses_{size}": size for size in sizes}, **missed})
    with place(tmp) as here:
        async with here.client() as raw:
            await raw.initialize()
            before = here.memory_mb()
            seconds, pages = await _replay(raw)
            floor = await asyncio.to_thread(_file_to_socket, tmp, pages)
            yield Row(
                f"replay of {MISSED:,} missed events",
                seconds * 1000,
                "ms",
                "file to socket",
                floor * 1000,
                "≤ 4 ×",
                ratio_at_most(4),
            )
            yield Row("memory added by that replay", here.memory_mb() - before, "MB", goal="≤ 20 MB", check=at_most(20))
            took: dict[int, float] = {}
            for size in sizes:
                took[size] = median([await _attach(raw, f"ses_{size}") for _ in range(15)])
                last = size == sizes[-1]
                yield Row(
                    f"attach at {size:,} events", took[size], "ms", "attach at 10,000", took.get(10_000, 0.0),
                    "≤ 2 ×, ≤ 30 ms" if last else "", (lambda v, r: v <= 30 and r <= 2) if last else None,
                )  # fmt: skip


async def _attach(raw: Raw, session_id: str) -> float:
    raw.heard.clear()
    begin = time.perf_counter()
    await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
    return (time.perf_counter() - begin) * 1000


async def _replay(raw: Raw) -> tuple[float, list[bytes]]:
    """All pages after the first event, 1,000 events each, a few asked for side by side (`seq` is gapless); the answers' bytes are
    not decoded, as a client in C would do it."""
    pages: list[bytes] = []
    begin = time.perf_counter()
    asked = iter(range(1, MISSED + 1, 1000))
    for after in [*itertools.islice(asked, SIDE_BY_SIDE)]:
        _ask_page(raw, after)
    for _ in range(0, MISSED, 1000):
        pages.append(await _answer(raw, b'"id":"page'))
        if (after := next(asked, None)) is not None:
            _ask_page(raw, after)
    seconds = time.perf_counter() - begin
    assert sum(b'"hasMore":false' in page for page in pages) == 1
    return seconds, pages


def _ask_page(raw: Raw, after: int) -> None:
    params = {"sessionId": "ses_missed", "afterSeq": after, "limit": 1000}
    raw.request(f"page{after}", "standfast/session/events", params)


async def _answer(raw: Raw, mark: bytes) -> bytes:
    """The next message with this mark at its beginning."""
    while True:
        header = await raw.reader.readuntil(b"\r\n\r\n")
        body = await raw.reader.readexactly(int(header.split(b":")[1]))
        if mark in body[:80]:
            return body


def _file_to_socket(tmp: Path, pages: list[bytes]) -> float:
    """The same bytes from a file through a socket, page by page, each asked for."""
    path = tmp / "pages"
    path.write_bytes(b"".join(frame(page) for page in pages))
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with path.open("rb") as file:
            for page in pages:
                theirs.recv(1)
                theirs.sendall(file.read(len(frame(page))))

    thread = threading.Thread(target=serve)
    begin = time.perf_counter()
    thread.start()
    for page in pages:
        ours.sendall(b"x")
        left = len(frame(page))
        while left:
            left -= len(ours.recv(min(left, 1 << 20)))
    seconds = time.perf_counter() - begin
    thread.join()
    ours.close()
    theirs.close()
    return seconds


async def _lists(tmp: Path) -> AsyncGenerator[Row]:
    path = places(tmp / "home").store
    path.parent.mkdir(mode=0o700, parents=True)
    store = await SqliteStore.open(path, CLOCK)
    for start in range(0, SESSIONS, 500):
        several = range(start, start + 500)
        await asyncio.gather(*(store.append(_created(f"ses_{n}", f"about number {n}")) for n in several))
    await store.close()
    with place(tmp) as here:
        async with here.client() as raw:
            await raw.initialize()

            async def ask(params: dict[str, Any]) -> float:
                raw.heard.clear()
                begin = time.perf_counter()
                found = await raw.ask(number(), "standfast/session/list", params)
                assert found["sessions"]
                return (time.perf_counter() - begin) * 1000

            listed = median([await ask({"limit": 50}) for _ in range(15)])
            sought = median([await ask({"limit": 50, "query": "number 9876"}) for _ in range(15)])
            yield Row(f"list of 50 of {SESSIONS:,} sessions", listed, "ms")
            yield Row(f"search in {SESSIONS:,} sessions", sought, "ms")
    assert os.path.exists(path)
