"""A daemon that may open no more files, or get no more memory, for a while (F20): it says so, loses nothing, takes no want for an
answer, and goes on after.

The limit of the running daemon is lowered so that exactly so many descriptors are left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from crash import oracle, sweep
from crash.commands import call_of, no_process_is_left, run_what_is_said, settled
from fake_api import FakeApi
from standfast.cli.client import Json
from support import Editor, RunningDaemon, configure, open_editor, open_socket, start_daemon
from support.daemon import places
from support.tiers import tier
from support.waiting import until

OPEN_TO_US = {"STANDFAST_DEBUG": "1"}
"""So that the test sees the daemon's descriptors without being root."""
PATCH = """/patch
*** Begin Patch
*** Update File: a.py
@@
-x = 1
+x = 2
*** Add File: new/b.txt
+1
*** End Patch
"""
TEXTS = {
    "read": "/read a.py",
    "write": "/write made.txt\nhello\n/end",
    "patch": PATCH,
    "command": "/run echo hi > out.txt",
}
TOLD = "TooManyOpenFiles"


@contextlib.contextmanager
def only(daemon: RunningDaemon, spare: int) -> Generator[None]:
    """The daemon can open exactly so many more files within the block."""
    opened = descriptors(daemon)
    free = [number for number in range(max(opened) + spare + 2) if number not in opened]
    before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (free[spare], before[1]))
    try:
        yield
    finally:
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, before)


def descriptors(daemon: RunningDaemon) -> set[int]:
    return {int(name) for name in os.listdir(f"/proc/{daemon.pid}/fd")}


def told(editor: Editor) -> str:
    """The sentence of `daemon/changed`, "" once it is not so any more."""
    changes = editor.told("standfast/daemon/changed")
    return next((one["message"] for one in changes[-1]["degraded"] if one["code"] == TOLD), "") if changes else ""


def wholly_done_or_not_at_all(workspace: Path) -> None:
    found = {name: (workspace / name).exists() for name in ("made.txt", "new/b.txt", "new")}
    patched = (workspace / "a.py").read_text() == "x = 2\n"
    assert found["new/b.txt"] == found["new"] == patched, found
    assert not found["made.txt"] or (workspace / "made.txt").read_text() == "hello\n"
    assert oracle.leftovers(workspace) == []


@pytest.mark.parametrize("spare", tier((2,), range(8)))
async def test_with_so_many_descriptors_left_each_run_has_its_end_everybody_is_told_and_it_goes_on_after(
    home: Path, workspace: Path, spare: int
) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home, OPEN_TO_US)
    async with open_editor(home, [workspace]) as editor, open_socket(home, [workspace], plain=True) as plain:
        session_id = await editor.create(workspace)
        assert (await editor.run_end(await editor.start(session_id, "/read a.py")))["status"] == "succeeded"
        before = descriptors(daemon)
        with only(daemon, spare):
            for text in TEXTS.values():
                ended(editor, await editor.run_end(await editor.start(session_id, text)), spare)
            wholly_done_or_not_at_all(workspace)
            if spare < 4:
                assert "ulimit" in await editor.wait_for(lambda: told(editor), "people to be told")
                [shown] = await plain.wait_for(lambda: plain.told("window/showMessage"), "a plain client to be told")
                assert "as many files open as it may" in shown["message"]
        await editor.wait_for(lambda: not told(editor), "it to be over")
        for text in ("go on", *TEXTS.values()):
            assert (await editor.run_end(await editor.start(session_id, text)))["status"] == "succeeded"
        assert (workspace / "a.py").read_text() == "x = 2\n" and (workspace / "out.txt").read_text() == "hi\n"
        stored = await oracle.history(editor, session_id)
        oracle.check_log(oracle.Witness(session_id, events=editor.events(session_id)), stored)
        oracle.check_runs(stored)
        oracle.check_calls(stored)
        await until(lambda: len(descriptors(daemon)) <= len(before), "every descriptor to be closed")
    assert daemon.end() == 0


def ended(editor: Editor, end: Json, spare: int) -> None:
    """A run's end, or what its call came to, says what was wanting."""
    results = [event for event in editor.events(type_="tool_result") if event["runId"] == end["runId"]]
    if end["status"] == "failed":
        assert end["error"]["reason"] == TOLD
        assert "Too many open files" in end["error"]["message"] and "safe" in end["error"]["message"]
    else:
        [result] = results
        if result["status"] != "ok":
            evidence = [event.get("evidence", "") for event in editor.events(type_="tool_recovery")]
            assert "Too many open files" in " ".join((result["content"], *evidence)), result
        else:
            assert spare > 0


async def test_whoever_comes_meanwhile_waits_at_the_door_and_the_loop_does_not_spin(
    home: Path, workspace: Path
) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home, OPEN_TO_US)
    async with open_socket(home, [workspace]) as editor:
        for spare in (0, 1):
            with only(daemon, spare):
                coming = asyncio.ensure_future(_come(home, workspace))
                await editor.wait_for(lambda: told(editor), "people to be told")
                busy = psutil.Process(daemon.pid).cpu_times()
                await asyncio.sleep(1)  # what is asked is what it does in that time
                after = psutil.Process(daemon.pid).cpu_times()
                assert after.user + after.system - busy.user - busy.system < 0.5, "it spins"
                assert not coming.done()
            assert (await coming)["serverInfo"]["name"]
            await editor.wait_for(lambda: not told(editor), "it to be over")
        log = places(home).log.read_text()
        assert log.count("no_descriptors_left") == 2 and "accept_failed" not in log
    assert daemon.end() == 0


async def _come(home: Path, workspace: Path) -> Json:
    async with open_socket(home, [workspace]) as editor:
        return editor.server


KNOCK = """\
import os, socket, sys, time
while not os.path.exists('go'):
    time.sleep(0.01)
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(sys.argv[1])
    sock.sendall(b'Content-Length: 2\\r\\n\\r\\n{}')
    open('knocked', 'w').close()
    try:
        said = sock.recv(100)
    except OSError:
        said = b''
with open('said.new', 'wb') as file:
    file.write(said)
os.rename('said.new', 'said')
"""


@pytest.mark.scenario("ATK-05")
@pytest.mark.parametrize("spare", tier((1,), (1, 2)))
async def test_a_command_is_not_let_in_because_nobody_could_look_who_it_is(
    home: Path, workspace: Path, spare: int
) -> None:
    (workspace / "knock.py").write_text(KNOCK)
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url}, sandbox={"level": "none", "at_most": "none"})
        daemon = start_daemon(home, {**OPEN_TO_US, "ANTHROPIC_API_KEY": api.key})
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            run_id = await editor.start(session_id, f"& {sys.executable} knock.py {places(home).socket}")
            assert (await editor.run_end(run_id))["status"] == "succeeded"
            with only(daemon, spare):
                (workspace / "go").touch()
                await until(lambda: (workspace / "knocked").exists(), "the command to knock")
                await editor.wait_for(lambda: told(editor), "people to be told")
                assert (await editor.request("standfast/daemon/status", {}))["clients"] == 0
            await until(lambda: (workspace / "said").exists(), "an end")
            assert (workspace / "said").read_bytes() == b"", "it was answered"
        assert "is a process of a command that the agent runs" in places(home).log.read_text()
        assert daemon.end() == 0


@pytest.mark.requirement("R12.2")
@pytest.mark.parametrize("then", tier(["it ends"], ["it ends", "it is stopped meanwhile"]))
async def test_a_living_command_is_not_called_lost_because_its_record_could_not_be_opened(
    home: Path, workspace: Path, then: str
) -> None:
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url})
        env = {**OPEN_TO_US, "ANTHROPIC_API_KEY": api.key}
        daemon = start_daemon(home, env)
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await editor.start(session_id, "$ while ! test -e go; do sleep 0.05; done; echo x >> out.txt; exit 7")
            await editor.event("tool_started")
            await until(lambda: list(places(home).commands.glob("*/record.json")), "its record")
            daemon.kill()
        again = start_daemon(home, env)
        async with open_socket(home) as editor:
            with only(again, 0):
                call = call_of(await editor.attach(session_id))
                assert call["verdict"] == "unknown" and "could not be checked (Too many open files" in call["evidence"]
                if then == "it is stopped meanwhile":
                    await editor.request("standfast/recovery/resolve", {"callId": call["callId"], "action": "stop"})
            if then == "it ends":
                assert call_of(await editor.attach(session_id))["verdict"] == "running"
                (workspace / "go").touch()
            result = await settled(editor, session_id, call["callId"])
            assert (result["exitCode"], result["recovered"]) == (7 if then == "it ends" else 143, True)
            assert (workspace / "out.txt").exists() == (then == "it ends")
            oracle.check_calls(await oracle.history(editor, session_id))
        await no_process_is_left(workspace)
        assert again.end() == 0


SLOWLY = (
    "$ while ! test -e go; do sleep 0.05; done; echo said; touch said; while ! test -e end; do sleep 0.05; done; exit 7"
)


async def test_a_command_that_runs_while_descriptors_are_short_has_its_real_result_after(
    home: Path, workspace: Path
) -> None:
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, {**OPEN_TO_US, "ANTHROPIC_API_KEY": api.key})
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            run_id = await editor.start(session_id, SLOWLY)
            await editor.event("tool_started")
            await until(lambda: list(places(home).commands.glob("*/record.json")), "its record")
            with only(daemon, 0):
                (workspace / "go").touch()
                await until(lambda: (workspace / "said").exists(), "output that nobody can read")
                await editor.wait_for(lambda: told(editor), "people to be told")
                (workspace / "end").touch()
                await until(lambda: list(places(home).commands.glob("*/exit.json")), "its end")
            assert (await editor.run_end(run_id))["status"] == "succeeded"
            [result] = editor.events(session_id, "tool_result")
            assert result["exitCode"] == 7 and result["content"].startswith("said\n")
        assert not api.refused
        assert daemon.end() == 0


async def test_what_takes_more_memory_than_there_is_ends_with_a_sentence_and_the_daemon_goes_on(
    home: Path, workspace: Path
) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home, OPEN_TO_US)
    (workspace / "big.txt").write_bytes(b"x\n" * 32 * 1024 * 1024)
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        assert (await editor.run_end(await editor.start(session_id, "/read a.py")))["status"] == "succeeded"
        before = resource.prlimit(daemon.pid, resource.RLIMIT_AS)
        room = psutil.Process(daemon.pid).memory_info().vms + 16 * 1024 * 1024
        resource.prlimit(daemon.pid, resource.RLIMIT_AS, (room, before[1]))
        end = await editor.run_end(await editor.start(session_id, "/read big.txt"))
        resource.prlimit(daemon.pid, resource.RLIMIT_AS, before)
        results = [event["content"] for event in editor.events(type_="tool_result") if event["runId"] == end["runId"]]
        said = end["error"]["message"] if end["status"] == "failed" else " ".join(results)
        assert "not enough memory" in said, (end, results)
        assert (await editor.run_end(await editor.start(session_id, "/read a.py")))["status"] == "succeeded"
        stored = await oracle.history(editor, session_id)
        oracle.check_log(oracle.Witness(session_id, events=editor.events(session_id)), stored)
        oracle.check_runs(stored)
        oracle.check_calls(stored)
    assert daemon.end() == 0


@pytest.mark.skipif(sweep.STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("call", "nth"),
    tier([("brk", 1)], [("mmap", n) for n in range(1, 13)] + [("brk", n) for n in range(1, 5)]),
)
async def test_memory_that_is_refused_for_a_moment_takes_nothing_back(tmp_path: Path, call: str, nth: int) -> None:
    """Python bears most refusals and dies of some: then it is a crash like any other. Either way the truth is found."""
    await sweep.kill_at(tmp_path / "point", sweep.ONE_TOOL, call, nth, "error=ENOMEM")
