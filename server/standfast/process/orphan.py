"""End a command that has no supervisor any more, or one that does not answer, and record that end in its place."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from standfast.clock import Clock
from standfast.process import record as records
from standfast.process import tree
from standfast.process.identity import Identity, alive, read_stat

TERM_S = 2.0
"""From SIGTERM to SIGKILL."""
LOOK_S = 0.02


async def end_unsupervised(directory: Path, record: records.Record, clock: Clock) -> None:
    """End a command whose supervisor is gone or does not answer, and record that end in its place."""

    def look() -> list[tree.Stat]:
        found = tree.of_operation(record.process, record.operation_id)
        return [stat for stat in found if stat.pid != record.supervisor.pid]

    await asyncio.to_thread(_end_supervisor, record.supervisor)
    processes = await asyncio.to_thread(look)
    await asyncio.to_thread(tree.terminate, processes)
    deadline = clock.monotonic() + TERM_S
    while await asyncio.to_thread(look) and clock.monotonic() < deadline:  # noqa: ASYNC110 - nobody tells us of their end
        await asyncio.sleep(LOOK_S)
    await asyncio.to_thread(tree.kill, look)
    end = records.Exit(
        exit_code=None,
        signal=None,  # nobody was there to see it
        started_at_ms=record.started_at_ms,
        ended_at_ms=clock.now_ms(),
        why="stopped",
    )
    await asyncio.to_thread(records.put_exit, str(directory), end)


def _end_supervisor(supervisor: Identity) -> None:
    """One that does not answer would otherwise write a second end."""
    stat = read_stat(supervisor.pid)
    if stat is not None and alive(supervisor) and stat.start == supervisor.start:
        tree.send(stat, signal.SIGKILL)
