"""What must hold after any crash (reliability.md §1), checked from outside: the wire, the disk, the model's next request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_api import FakeApi
from standfast.cli.client import ConnectionLost, Json, RequestFailed
from support import Editor, RunningDaemon, open_editor, start_daemon

VERDICTS = {"not_applied", "applied", "partial", "diverged", "running", "finished", "unknown"}
TERMINAL = {"succeeded", "failed", "cancelled", "interrupted"}


@dataclass
class Witness:
    """What a client was told before the daemon died."""

    session_id: str | None = None
    run_id: str | None = None
    events: list[Json] = field(default_factory=list[Json])
    died: bool = False


async def until_death(
    home: Path, workspace: Path, api: FakeApi, failpoints: str, *, mode: str = "auto", text: str = "fix it"
) -> Witness:
    """A daemon with failpoints and one run in it; returns when the daemon has died or the run has ended."""
    seen = Witness()
    daemon = start_daemon(home, {"ANTHROPIC_API_KEY": api.key, "FAILPOINTS": failpoints})
    try:
        async with open_editor(home, [workspace]) as editor:
            try:
                seen.session_id = await editor.create(workspace, mode=mode)
                seen.run_id = await editor.start(seen.session_id, text)
                await editor.run_end(seen.run_id)
            except (ConnectionLost, RequestFailed, AssertionError):
                pass
            finally:
                seen.events = editor.events()
        seen.died = daemon.process.poll() is not None or await dies(daemon)
    finally:
        if daemon.process.poll() is None:
            daemon.kill()
    return seen


async def dies(daemon: RunningDaemon) -> bool:
    """The connection may be gone a moment before the process is."""
    try:
        async with asyncio.timeout(0.5):
            await daemon.exited()
    except TimeoutError:
        return False
    return True


async def history(editor: Editor, session_id: str) -> list[Json]:
    """All events, by page, ascending."""
    events: list[Json] = []
    after = 0
    while True:
        page = await editor.request(
            "standfast/session/events", {"sessionId": session_id, "afterSeq": after, "limit": 1000}
        )
        events += page["events"]
        if not page["hasMore"]:
            return events
        after = events[-1]["seq"]


def check_log(seen: Witness, stored: list[Json]) -> None:
    """I1 and I2: gapless, and everything that a client was told is there, unchanged."""
    assert [event["seq"] for event in stored] == list(range(1, len(stored) + 1))
    for event in seen.events:
        assert event["seq"] <= len(stored), f"a client was told {event['type']} {event['seq']}, which is not stored"
        assert stored[event["seq"] - 1] == event


def check_calls(stored: list[Json]) -> dict[str, str | None]:
    """I5: each call that started has a result or a verdict, no call has two results; returns call id → verdict."""
    verdicts: dict[str, str | None] = {}
    results: dict[str, int] = {}
    uncertain: dict[str, int] = {}
    for event in stored:
        call = event.get("callId")
        if event["type"] == "tool_started":
            verdicts[call] = None
        elif event["type"] == "tool_recovery" and event["status"] == "uncertain":
            uncertain[call] = uncertain.get(call, 0) + 1
        elif event["type"] == "tool_recovery":
            verdicts[call] = event["status"]
        elif event["type"] == "tool_result":
            results[call] = results.get(call, 0) + 1
    assert all(count == 1 for count in results.values()), "a call has two results"
    assert all(count == 1 for count in uncertain.values()), "a call was called uncertain twice"
    for call, verdict in verdicts.items():
        assert call in results or verdict in VERDICTS, f"{call} has neither a result nor a verdict"
    return verdicts


def check_runs(stored: list[Json]) -> None:
    """Each run that started has one end."""
    started = [event["runId"] for event in stored if event["type"] == "run_started"]
    finished = [event["runId"] for event in stored if event["type"] == "run_finished"]
    assert sorted(started) == sorted(finished), (started, finished)


def leftovers(workspace: Path) -> list[str]:
    """I9: what does not belong in the workspace."""
    return [str(path) for path in workspace.rglob("*") if ".git" not in path.parts and "standfast" in path.name]


def of_type(stored: list[Json], type_: str, **fields: Any) -> list[Json]:
    return [e for e in stored if e["type"] == type_ and all(e.get(key) == value for key, value in fields.items())]


def environment_of(api: FakeApi, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": api.key, **(more or {})}


def git(workspace: Path, *words: str) -> str:
    """What the workspace's git says."""
    return subprocess.run(["git", *words], cwd=workspace, check=True, capture_output=True, text=True).stdout.strip()


def end_process(pid: int) -> None:
    """End a process that the test itself caused."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
