"""Search, the list and the statistics over very many sessions with all their history, through a real daemon (issue F, 6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from bench.measure import Row, at_most, median
from bench.place import place
from editor.desk import number
from standfast.clock import SystemClock
from standfast.events.entry import Entry
from standfast.events.types import (
    AssistantChunk,
    AssistantMessage,
    ModelRequest,
    RunFinished,
    RunStarted,
    SessionCreated,
    TextContent,
    Usage,
    UserMessage,
)
from standfast.store.sqlite import SqliteStore
from support.daemon import places
from wire.raw import Raw

TURNS = 11
"""Nine events each: with its first one a session has a hundred."""
AT_ONCE = 40
TIMES = 15
SEARCH_MS = 100.0


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    """A tenth of it in quick mode."""
    tmp, sessions = tmp / "search", 1000 if quick else 10_000
    await _fill(tmp, sessions)
    where = f"{sessions:,} sessions, {sessions * (1 + 9 * TURNS):,} events"
    with place(tmp) as here:
        async with here.client() as raw:
            await raw.initialize()
            for what, method, params in (
                ("search for a rare word", "session/list", {"limit": 50, "query": f"needle{sessions // 2}"}),
                ("search for a word that is everywhere", "session/list", {"limit": 50, "query": "parser"}),
                (
                    "search in what the person wrote",
                    "message/history",
                    {"limit": 50, "query": f"needle{sessions // 2}"},
                ),
            ):
                took = await _asked(raw, method, params)
                yield Row(f"{what}, {where}", took, "ms", goal="≤ 100 ms", check=at_most(SEARCH_MS))
            yield Row(f"list of 50, {where}", await _asked(raw, "session/list", {"limit": 50}), "ms")
            yield Row(f"statistics of all runs, {where}", await _asked(raw, "run/list", {"limit": 1}), "ms")


async def _asked(raw: Raw, method: str, params: dict[str, Any]) -> float:
    """Milliseconds until the answer, the median of several."""
    took: list[float] = []
    for _ in range(TIMES):
        raw.heard.clear()
        begin = time.perf_counter()
        found = await raw.ask(number(), f"standfast/{method}", params)
        took.append((time.perf_counter() - begin) * 1000)
        assert any(found[key] for key in ("sessions", "messages", "runs") if key in found)
    return median(took)


async def _fill(tmp: Path, sessions: int) -> None:
    """The store that the daemon will open."""
    path = places(tmp / "home").store
    path.parent.mkdir(mode=0o700, parents=True)
    store = await SqliteStore.open(path, SystemClock())
    try:
        for start in range(0, sessions, AT_ONCE):
            several = range(start, min(sessions, start + AT_ONCE))
            await asyncio.gather(*(store.append(_session(n)) for n in several))
    finally:
        await store.close()


def _session(n: int) -> Entry:
    created = SessionCreated(workspace_uri=f"file:///nowhere/{n % 20}", title=f"about number {n}")
    return Entry(f"ses_{n}", [(None, created), *(pair for turn in range(TURNS) for pair in _turn(n, turn))])


def _turn(n: int, turn: int) -> list[tuple[str | None, Any]]:
    run = f"run_{n}_{turn}"
    said = TextContent(text=f"please look at the parser of module{turn} again" + (f" needle{n}" if turn == 5 else ""))
    text = f"I looked at function{n % 97} in module{turn}; the parser is as it was. " * 3
    facts = [
        RunStarted(worker_id="w", boot_id="b", trigger="message"),
        UserMessage(message_id=f"msg_{n}_{turn}", client_message_id=f"c_{n}_{turn}", content=[said]),
        ModelRequest(attempt=1, model="m"),
        *(AssistantChunk(attempt=1, offset=40 * part, text=text[40 * part : 40 * part + 40]) for part in range(4)),
        AssistantMessage(
            blocks=[{"type": "text", "text": text}], stop_reason="end_turn", model="m", usage=Usage(input_tokens=100)
        ),
        RunFinished(status="succeeded", usage=Usage(input_tokens=100)),
    ]
    return [(run, fact) for fact in facts]
