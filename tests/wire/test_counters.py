"""`standfast/daemon/status` says what the daemon counted (issue D.5)."""

from __future__ import annotations

from pathlib import Path

from editor.desk import do, number, session
from standfast.daemon.compose import Daemon
from standfast.daemon.loop_lag import LoopLag
from wire.raw import Json, Raw, connect


async def counters(raw: Raw) -> Json:
    return (await raw.ask(number(), "standfast/daemon/status"))["counters"]


async def test_events_commits_and_what_clients_have_not_taken_are_counted(
    parts: Daemon, raw: Raw, tmp_path: Path
) -> None:
    await raw.initialize()
    before = await counters(raw)
    session_id = await session(raw, tmp_path)
    async with connect(parts) as stalled:
        await stalled.initialize()
        await stalled.ask(number(), "standfast/session/attach", {"sessionId": session_id})
        stalled.stop_reading()
        await do(raw, session_id, "hello")
        after = await counters(raw)
        stored = await raw.ask(number(), "standfast/session/events", {"sessionId": session_id, "afterSeq": 0})
        assert after["events"] - before["events"] == len(stored["events"])
        assert after["commits"] > before["commits"]
        assert after["appendsPerCommit"] > 0
        assert 0 < after["commitMeanMs"] <= after["commitMaxMs"]
        assert after["writesWaiting"] == 0
        assert after["outgoingBytes"] >= after["outgoingMaxBytes"]
        stalled.read_on()


async def test_a_loop_that_was_held_up_says_so() -> None:
    lag = LoopLag()
    for late_ms in [1.0] * 99 + [80.0]:
        lag.saw(late_ms)
    assert lag.max_ms == 80.0
    assert lag.p99_ms == 80.0
