"""What a client may do wrong, as data: `hostile.jsonl` holds for each case what is sent and exactly what comes back.

A new case is a line. `send` items: `message` (JSON), `body` (text, framed), `raw` (text, sent as it is), `latin1` and `utf16` (bodies in
another encoding), `repeat` / `repeat_body` [before, piece, times, after], `nest` [open, close, depth].
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from standfast.daemon.compose import Daemon
from wire.raw import Json, Raw, connect, frame, house

CASES: list[Json] = [json.loads(line) for line in (Path(__file__).parent / "hostile.jsonl").read_text().splitlines()]
PING = {"jsonrpc": "2.0", "id": "ping", "method": "standfast/daemon/status", "params": {}}


def as_bytes(item: Json) -> bytes:
    """What goes over the socket."""
    (kind, value), *_ = item.items()
    if kind == "message":
        return frame(value)
    if kind == "raw":
        return value.encode("latin-1")
    if kind in ("repeat", "repeat_body"):
        before, piece, times, after = value
        data = (before + piece * times + after).encode()
        return data if kind == "repeat" else frame(data)
    if kind == "nest":
        return frame((value[0] * value[2] + value[1] * value[2]).encode())
    return frame(value.encode({"body": "utf-8", "latin1": "latin-1", "utf16": "utf-16"}[kind]))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One daemon for all cases: no case may harm the next one's connection."""
    async with house(tmp_path_factory.mktemp("corpus") / "home") as daemon:
        yield daemon


async def play(raw: Raw, case: Json) -> list[Json]:
    """Bring the connection into the case's state, send, and collect the replies."""
    if case["state"] != "fresh":
        await raw.initialize()
    if case["state"] == "shutdown":
        await raw.ask("shutdown", "shutdown")
    before = len(raw.heard)
    raw.send_raw(b"".join(as_bytes(item) for item in case["send"]))
    if case["closed"]:
        await raw.rest()
    else:
        for message_id in asked(case):
            await raw.answer(message_id)
        raw.send(PING)
        await raw.answer("ping")
    return [message for message in raw.heard[before:] if "id" in message and message["id"] != "ping"]


def asked(case: Json) -> list[Any]:
    """The ids of the case's sound requests: their handlers may take a while."""
    messages = [item["message"] for item in case["send"] if "message" in item]
    return [m["id"] for m in messages if "method" in m and type(m.get("id")) in (int, str)]


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 60
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.scenario("ATK-48")
@pytest.mark.scenario("ATK-49")
@pytest.mark.scenario("ATK-51")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_what_is_wrong_gets_exactly_its_reply(shared: Daemon, case: Json) -> None:
    async with connect(shared) as raw:
        replies = await play(raw, case)
    by_id: Any = lambda reply: json.dumps(reply["id"])  # noqa: E731 - requests side by side may be answered in any order
    assert sorted(replies, key=by_id) == sorted(case["replies"], key=by_id)
    assert raw.closed == case["closed"]
