"""I10, for any order of messages: each request gets one answer, or its connection is closed; the daemon never notices."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wire.raw import Json, connect, frame, house

IDS = st.integers(1, 4)
INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}


def request(method: str, params: Any = None) -> st.SearchStrategy[tuple[str, Json]]:
    def made(number: int) -> tuple[str, Json]:
        return "request", {"jsonrpc": "2.0", "id": number, "method": method, "params": {} if params is None else params}

    return IDS.map(made)


def note(method: str, params: Any = None) -> tuple[str, Json]:
    return "note", {"jsonrpc": "2.0", "method": method, "params": {} if params is None else params}


STEPS = st.one_of(
    request("initialize", INITIALIZE),
    st.just(note("initialized")),
    request("standfast/session/list"),
    request("standfast/session/events", {"sessionId": "ses_none"}),
    request("standfast/session/attach", {"sessionId": 5}),
    request("no/such"),
    request("shutdown"),
    IDS.map(lambda number: note("$/cancelRequest", {"id": number})),
    IDS.map(lambda number: ("note", {"jsonrpc": "2.0", "id": number, "result": None})),
    st.just(note("exit")),
    st.just(("cut", {})),
)


async def play(steps: list[tuple[str, Json]], pauses: list[bool]) -> None:
    """Play the steps on a connection, then say what is to hold."""
    with tempfile.TemporaryDirectory() as home:
        async with house(Path(home) / "home") as daemon, connect(daemon) as raw:
            sent: dict[int, int] = {}
            over = False
            for (kind, message), pause in zip(steps, pauses, strict=False):
                if kind == "cut":
                    raw.send_raw(frame({"jsonrpc": "2.0"})[:-1])
                    raw.writer.write_eof()
                    over = True
                    break
                raw.send(message)
                if kind == "request":
                    sent[message["id"]] = sent.get(message["id"], 0) + 1
                if message.get("method") == "exit":
                    over = True
                    break
                if pause:
                    await asyncio.sleep(0)
            if over:
                await raw.rest()
            else:
                for number, count in sent.items():
                    while len([m for m in raw.heard if m.get("id") == number and "method" not in m]) < count:
                        assert await raw.next() is not None, "closed though nobody asked for it"
            answers: dict[int, int] = {}
            for heard in raw.heard:
                if isinstance(heard.get("id"), int) and "method" not in heard:
                    answers[heard["id"]] = answers.get(heard["id"], 0) + 1
            assert all(count <= sent.get(number, 0) for number, count in answers.items()), "an answer nobody asked for"
            async with connect(daemon) as other:
                await other.initialize()
                await other.ask("ping", "standfast/daemon/status")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=14), st.lists(st.booleans(), min_size=14, max_size=14))
def test_every_request_is_answered_once_or_its_connection_is_closed(
    steps: list[tuple[str, Json]], pauses: list[bool]
) -> None:
    asyncio.run(asyncio.wait_for(play(steps, pauses), 60))
