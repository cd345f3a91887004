"""kill -9 of the real daemon at the n-th call of a system call, and everything that must hold afterwards (F2, reliability.md §2).

strace is attached once the daemon serves, so that only what a run does is counted. It counts a call's name per thread: the
first thread that makes its n-th one meets the kill. The model is the scripted one: it needs neither network nor SDK.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from crash import oracle
from standfast.cli.client import ConnectionLost, Json, RequestFailed
from support import Editor, RunningDaemon, configure, environment, open_socket, start_daemon
from support.editor import LSP
from support.waiting import until

CALLS = (
    "pwrite64",
    "fdatasync",
    "write",
    "fsync",
    "renameat2,rename,renameat",
    "unlink,unlinkat",
    "ftruncate",
    "mkdir,mkdirat",
    "openat2",
    "openat",
)
"""What leaves a trace on a disk, and the opening of files; one sweep each."""
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""The daemon under test has no capability, as a person's has none (reliability.md §5)."""
STRACE = shutil.which("strace")

Files = dict[str, str]


@dataclass(frozen=True)
class Case:
    """A run of one message, and the workspace before and after it."""

    text: str
    before: Files
    after: Files


ONE_TOOL = Case(
    "/patch\n*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch\n",
    {"a.txt": "old\n"},
    {"a.txt": "new\n"},
)
THREE_FILES = Case(
    """/patch
*** Begin Patch
*** Update File: a.txt
@@
-1
+2
*** Add File: sub/b.txt
+2
*** Delete File: c.txt
*** Update File: d.txt
*** Move to: e.txt
@@
-1
+2
*** End Patch
""",
    {"a.txt": "1\n", "c.txt": "1\n", "d.txt": "1\n"},
    {"a.txt": "2\n", "sub/b.txt": "2\n", "e.txt": "2\n"},
)


@dataclass
class Point:
    """One place at which the daemon was killed, and what came of it."""

    died: bool
    verdict: str | None = None


async def kill_at(place: Path, case: Case, calls: str, nth: int, how: str = "signal=KILL") -> Point:
    """Set up, run, kill at the nth call, start again, check I1-I10 and the outside truth. Not died: there is no such call.

    `how`: what else strace does there, e.g. `error=ENOMEM`. A daemon that lives on has done what was asked.
    """
    home, folder = _prepare(place, case)
    seen = oracle.Witness()
    daemon = start_daemon(home, under=UNPRIVILEGED)
    try:
        async with _editor(home, folder) as editor:
            seen.session_id = await editor.create(folder, mode="auto")
            async with _traced(daemon, place, f"{calls}:{how}:when={nth}"):
                try:
                    await editor.run_end(await editor.start(seen.session_id, case.text))
                except (ConnectionLost, RequestFailed, AssertionError):
                    assert editor.lost.is_set()
                    await daemon.exited()
                seen.events = editor.events(seen.session_id)
        seen.died = daemon.process.poll() is not None
    finally:
        if daemon.process.poll() is None:
            daemon.kill()
    if not seen.died:
        assert files_in(folder) == case.after
        return Point(died=False)
    return Point(died=True, verdict=await _afterwards(home, folder, case, seen))


def _prepare(place: Path, case: Case) -> tuple[Path, Path]:
    home, folder = place / "home", place / "project"
    home.mkdir(mode=0o700, parents=True)
    folder.mkdir()
    for name, text in case.before.items():
        (folder / name).write_text(text)
    configure(home, model={"provider": "scripted"})
    return home, folder


@contextlib.asynccontextmanager
async def _editor(home: Path, folder: Path) -> AsyncGenerator[Editor]:
    """A client with no more rights than the daemon, which otherwise could not look at it."""
    if not UNPRIVILEGED:
        async with open_socket(home, [folder]) as editor:
            yield editor
        return
    async with Editor.over_process(*UNPRIVILEGED, *LSP, env=environment(home)) as editor:
        await editor.initialize([folder.as_uri()])
        yield editor


@contextlib.asynccontextmanager
async def _traced(daemon: RunningDaemon, place: Path, inject: str) -> AsyncGenerator[None]:
    """strace on the running daemon; ended with the block."""
    said = place / "strace.err"
    with said.open("wb") as err:
        strace = subprocess.Popen(
            [str(STRACE), "-f", "-o", str(place / "strace.out"), "-e", f"trace={inject.partition(':')[0]}", "-e", f"inject={inject}",
             "-p", str(daemon.pid)],
            stdin=subprocess.DEVNULL, stdout=err, stderr=err,
        )  # fmt: skip
    try:
        await until(lambda: b"attached" in said.read_bytes() or strace.poll() is not None, "strace to be attached")
        assert strace.poll() is None, said.read_text()
        yield
    finally:
        if strace.poll() is None:
            strace.terminate()
        strace.wait(30)


async def _afterwards(home: Path, folder: Path, case: Case, seen: oracle.Witness) -> str | None:
    """The next daemon: nothing runs by itself, the verdict is the truth, the person goes on, nothing is left. The verdict."""
    found = files_in(folder)
    daemon = start_daemon(home, under=UNPRIVILEGED)
    try:
        async with _editor(home, folder) as editor:
            attached = await editor.attach(seen.session_id or "")
            calls = (attached.get("recovery") or {"calls": []})["calls"]
            verdict = _compare(calls, found, case)
            assert oracle.leftovers(folder) == []
            end = await editor.run_end(await editor.start(seen.session_id or "", "go on"))
            assert end["status"] == "succeeded", end
            stored = await oracle.history(editor, seen.session_id or "")
        now = files_in(folder)  # where the request was never answered, going on means to carry it out
        assert now == found or (now == case.after and end["seq"] > attached["headSeq"]), "something was done again"
        oracle.check_log(seen, stored)
        oracle.check_runs(stored)
        oracle.check_calls(stored)
        for result in oracle.of_type(stored, "tool_result", status="ok"):
            assert now == case.after, f"a result without its effect: {result}"
    finally:
        assert daemon.end() == 0
    return verdict


def _compare(calls: list[Json], found: Files, case: Case) -> str | None:
    """The verdict against what a test can see from outside."""
    truth = "applied" if found == case.after else "not_applied" if found == case.before else "partial"
    if not calls:
        assert truth in ("not_applied", "applied"), f"nobody is told of {found}"
        return None
    [call] = calls
    assert call["verdict"] == truth, (found, call)
    return truth


def files_in(folder: Path) -> Files:
    """Whole texts by name; temporary names of a write that was cut are not looked at (they are gone after recovery)."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".tmp~") and "standfast" not in path.name
    }


async def counted(place: Path, case: Case) -> dict[str, int]:
    """By each of `CALLS`: how often a run that nothing disturbs makes it, in the thread that makes it most often.

    A point's number is counted so: per thread and name.
    """
    home, folder = _prepare(place, case)
    daemon = start_daemon(home, under=UNPRIVILEGED)
    try:
        async with _editor(home, folder) as editor:
            session_id = await editor.create(folder, mode="auto")
            async with _traced(daemon, place, f"{','.join(CALLS)}:delay_exit=0"):
                await editor.run_end(await editor.start(session_id, case.text))
    finally:
        daemon.end()
    assert files_in(folder) == case.after
    made = Counter(re.findall(r"^(\d+) +(\w+)\(", (place / "strace.out").read_text(), re.MULTILINE))
    return {
        calls: max((count for (_, name), count in made.items() if name in calls.split(",")), default=0)
        for calls in CALLS
    }


async def sweep(place: Path, case: Case, calls: str, numbers: range) -> list[Point]:
    """A call at each of these numbers, until one is not reached: the points that were."""
    met: list[Point] = []
    for nth in numbers:
        point = await kill_at(place / f"{nth}", case, calls, nth)
        if not point.died:
            break
        met.append(point)
    return met
