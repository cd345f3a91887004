"""A run that the person stops at any moment (F21): at each await of the daemon where something was stored, published or done.

The daemon stops itself (SIGSTOP, by failpoints) at every append, publication and step of an effect. At the n-th of these places the
request to cancel is sent; when the daemon goes on, the cancel meets exactly what was going on there. One run for each n.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crash import oracle
from crash.commands import no_process_is_left
from fake_api import FakeApi, Request, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import Json, RequestFailed
from support import Editor, RunningDaemon, configure, open_socket, start_daemon
from support.tiers import tier

PLACES = (
    "before_append", "after_append", "after_publish", "before_effect", "mid_effect", "before_exchange", "after_exchange",
    "in_spawn_before", "in_spawn_after", "after_effect", "before_result",
)  # fmt: skip
STOPS_LEAST = 40
"""How many of these places one run with a patch and a command passes, at least: a sweep that meets fewer tests nothing."""
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+2\n*** Add File: b.txt\n+2\n*** End Patch\n"
OLD, NEW = {"a.txt": "1\n"}, {"a.txt": "2\n", "b.txt": "2\n"}
AGAIN_S = 0.002


def patches_and_runs(request: Request) -> Answer:
    if request.last_text == "fix it":
        return reply("I patch.", tools=[tool("apply_patch", id="tu_patch", patch=PATCH)])
    if len(request.tool_results) == 1 and not request.last_text:
        return reply("I run it.", tools=[tool("run_command", id="tu_run", command="echo x >> out.txt; sleep 0.05")])
    return reply("Done.")


@dataclass
class Stops:
    """Lets a daemon that stops itself go on; does `act` first at the `at`-th stop since `arm`."""

    daemon: RunningDaemon
    at: int = 0
    met: int = 0
    act: Callable[[], object] | None = None

    def arm(self, at: int, act: Callable[[], object]) -> None:
        self.at, self.met, self.act = at, 0, act

    async def watch(self) -> None:
        while True:
            if self._stopped():
                self.met += 1
                if self.act is not None and self.met == self.at:
                    self.act()
                    await asyncio.sleep(0)  # what it wrote is in the socket by now
                os.kill(self.daemon.pid, signal.SIGCONT)
            else:
                await asyncio.sleep(AGAIN_S)

    def _stopped(self) -> bool:
        with contextlib.suppress(OSError, IndexError):
            return Path(f"/proc/{self.daemon.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        return False


@contextlib.asynccontextmanager
async def stopping(home: Path, api: FakeApi) -> AsyncGenerator[Stops]:
    configure(home, model={"base_url": api.url}, daemon={"idle_exit_s": 3600})
    daemon = start_daemon(
        home, oracle.environment_of(api, {"FAILPOINTS": ";".join(f"{place}=stop@*" for place in PLACES)})
    )
    stops = Stops(daemon)
    watching = asyncio.ensure_future(stops.watch())
    try:
        yield stops
        daemon.process.terminate()
        assert await daemon.exited() == 0
    finally:
        watching.cancel()
        if daemon.process.poll() is None:
            daemon.kill()


async def _cancelled_at(editor: Editor, stops: Stops, folder: Path, at: int) -> bool:
    """One run in a folder of its own, cancelled at its n-th stop. False: it has not so many."""
    folder.mkdir()
    (folder / "a.txt").write_text(OLD["a.txt"])
    session_id = await editor.create(folder)
    asked: list[asyncio.Future[Json]] = []
    number = editor._next_id  # pyright: ignore[reportPrivateUsage]

    def cancel() -> None:
        """By its id, or where the client does not know that yet, the request that is to start it."""
        started = editor.events(session_id, "run_started")
        if starting.done() and started:
            asked.append(asyncio.ensure_future(editor.request("standfast/run/cancel", {"runId": started[0]["runId"]})))
        else:
            asked.append(asyncio.ensure_future(editor.notify("$/cancelRequest", {"id": number})))

    stops.arm(at, cancel)
    starting = asyncio.ensure_future(editor.start(session_id, "fix it"))
    with contextlib.suppress(RequestFailed):  # cancelled before it began
        await editor.run_end(await starting)
    if not asked:
        return False
    answer = await asked[0]
    if answer is not None:
        assert answer["run"]["status"] in ("cancelled", "succeeded")
        assert await editor.event("run_finished", runId=answer["run"]["runId"], status=answer["run"]["status"])
    await _the_truth_is_known(editor, session_id, folder)
    return True


async def _the_truth_is_known(editor: Editor, session_id: str, folder: Path) -> None:
    stored = await oracle.history(editor, session_id)
    oracle.check_log(oracle.Witness(session_id, events=editor.events(session_id)), stored)
    oracle.check_runs(stored)
    assert set(oracle.check_calls(stored).values()) <= {None, "applied", "not_applied"}
    calls = {event["callId"]: event["tool"] for event in oracle.of_type(stored, "tool_call")}
    results = {calls[event["callId"]]: event for event in oracle.of_type(stored, "tool_result")}
    assert set(results) == set(calls.values()), "a call was left without a result"
    before = {path.name: path.read_text() for path in folder.iterdir()}
    ran = before.pop("out.txt", "")
    assert before in (OLD, NEW), before
    if "apply_patch" in results:
        assert (results["apply_patch"]["status"] == "ok") == (before == NEW), results["apply_patch"]
    assert before == OLD or oracle.of_type(stored, "tool_started"), "an effect without an intent"
    if "run_command" in results:
        told = results["run_command"]
        assert ran in ("", "x\n") and (told["status"] != "ok" or ran == "x\n")
        if "Nothing of it ran" in told["content"] or "had no effect" in told["content"]:
            assert ran == ""
    else:
        assert ran == ""
    assert (await editor.run_end(await editor.start(session_id, "go on")))["status"] == "succeeded"
    after = {path.name: path.read_text() for path in folder.iterdir()}
    assert (after.pop("out.txt", ""), after) == (ran, before), "something was done after the cancel"


@pytest.mark.requirement("R4.4")
async def test_cancelled_at_any_await_a_run_ends_once_its_calls_are_known_and_the_next_request_is_accepted(
    home: Path, tmp_path: Path
) -> None:
    with FakeApi(patches_and_runs) as api:
        async with stopping(home, api) as stops, open_socket(home) as editor:
            met = 0
            for at in tier(range(4, 200, 8), range(1, 200)):
                if not await _cancelled_at(editor, stops, tmp_path / f"project{at}", at):
                    break
                met = at
            assert met >= STOPS_LEAST, f"{met} stops"
        assert not api.refused, api.refused
    await no_process_is_left(tmp_path / "project")


@pytest.mark.requirement("R4.4")
async def test_cancelled_at_each_event_that_its_client_hears_a_run_ends_once_and_its_calls_are_known(
    home: Path, tmp_path: Path
) -> None:
    with FakeApi(patches_and_runs) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home) as editor:
            for at in itertools.count(1):
                folder = tmp_path / f"project{at}"
                folder.mkdir()
                (folder / "a.txt").write_text(OLD["a.txt"])
                session_id = await editor.create(folder)
                run_id = await editor.start(session_id, "fix it")
                await editor.wait_for(lambda: len(of_run(editor, run_id)) >= at or ended(editor, run_id), "the event")  # noqa: B023
                if len(of_run(editor, run_id)) < at:
                    break
                run = (await editor.request("standfast/run/cancel", {"runId": run_id}))["run"]
                assert run["status"] in ("cancelled", "succeeded")
                await editor.event("run_finished", runId=run_id, status=run["status"])
                await _the_truth_is_known(editor, session_id, folder)
        assert at > 12, "it has fewer events than it had: this tests less"
        assert not api.refused, api.refused
        assert daemon.end() == 0
    await no_process_is_left(tmp_path / "project")


def of_run(editor: Editor, run_id: str) -> list[Json]:
    return [event for event in editor.events() if event.get("runId") == run_id]


def ended(editor: Editor, run_id: str) -> bool:
    return any(event["type"] == "run_finished" for event in of_run(editor, run_id))
