"""Clocks that jump while the daemon lives (F18): order goes by seq, waits by a clock that only goes forward."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from crash import oracle
from fake_api import FakeApi, http_error, reply
from standfast.cli.client import Json
from support import Editor, configure, open_socket, start_daemon

FAKETIME = next(
    (found for lib in ("lib*", "lib*/*") for found in Path("/usr").glob(f"{lib}/faketime/libfaketimeMT.so.1")), None
)
"""The one for programs with threads; where distributions put it."""
JUMPS = {"two hours on": "+7200", "three days back": "-259200"}
pytestmark = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")


def jump(clock: Path, offset: str) -> None:
    """The daemon's wall clock, from its next look on."""
    fresh = clock.with_suffix(".new")
    fresh.write_text(offset)
    os.replace(fresh, clock)


@pytest.fixture
async def desk(home: Path, workspace: Path, fake_api: FakeApi, tmp_path: Path) -> AsyncGenerator[Editor]:
    jump(tmp_path / "clock", "+0")
    configure(home, model={"base_url": fake_api.url}, run={"retry_base_ms": 1})
    daemon = start_daemon(
        home,
        {
            "ANTHROPIC_API_KEY": fake_api.key,
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock"),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
        },
    )
    async with open_socket(home, [workspace]) as editor:
        yield editor
    daemon.end()


@pytest.mark.parametrize("name", JUMPS)
async def test_a_clock_that_jumps_neither_reorders_nor_delays_nor_ends_anything(
    desk: Editor, workspace: Path, fake_api: FakeApi, tmp_path: Path, name: str
) -> None:
    fake_api.push(reply("One."), http_error("rate_limit_error", retry_after="2"), reply("Two."), reply("Three."))
    session_id = await desk.create(workspace)
    assert (await desk.run_end(await desk.start(session_id, "one")))["status"] == "succeeded"
    second = await desk.start(session_id, "two")
    await desk.event("model_error")
    jump(tmp_path / "clock", JUMPS[name])  # within the wait that the server asked for
    assert (await desk.run_end(second))["status"] == "succeeded"
    assert (await desk.run_end(await desk.start(session_id, "three")))["status"] == "succeeded"
    stored = await oracle.history(desk, session_id)
    oracle.check_log(oracle.Witness(session_id, events=desk.events(session_id)), stored)
    oracle.check_runs(stored)
    assert [_text(event) for event in oracle.of_type(stored, "assistant_message")] == ["One.", "Two.", "Three."]
    times = [event["atMs"] for event in stored]
    jumped = max(abs(after - before) for before, after in itertools.pairwise(times))
    assert jumped > 3_600_000, "the clock did not jump: this tests nothing"
    listed = (await desk.request("standfast/session/list", {"workspaceUri": workspace.as_uri()}))["sessions"]
    assert [one["sessionId"] for one in listed] == [session_id]


def _text(message: Json) -> str:
    return message["blocks"][0]["text"]
