"""A soak as a state machine: runs, edits, kills, disk faults, editors coming and going; what must hold is checked after each step.

The daemon, its store, its sockets and the commands are real; the model is the scripted one. Hypothesis chooses the steps, and
shortens a sequence that breaks something.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from crash import oracle
from standfast.cli.client import ConnectionLost, Json, RequestFailed
from support import Editor, RunningDaemon, configure, end_daemon, open_socket, start_daemon

T = TypeVar("T")

RSS_MAX = 220 * 1024 * 1024
FDS_MAX = 150
ANSWER_S = 60
STEPS = Bundle("sessions")
OUTAGE = (ConnectionLost, RequestFailed, AssertionError)
"""What a client meets when its daemon dies under it."""


@dataclass
class Known:
    """A session as the clients know it."""

    session_id: str
    folder: Path
    told: dict[int, Json] = field(default_factory=dict[int, Json])
    runs: list[str] = field(default_factory=list[str])


class Soak(RuleBasedStateMachine):
    """One example: a home of its own, from the first daemon to the last."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = Path(tempfile.mkdtemp(prefix="soak-"))
        self.home, self.folder = self.place / "home", self.place / "project"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        configure(self.home, model={"provider": "scripted"}, daemon={"grace_s": 1}, run={"retry_base_ms": 1})
        self.daemon: RunningDaemon | None = None
        self.fault = ""
        self.editors: list[tuple[contextlib.AsyncExitStack, Editor]] = []
        self.known: list[Known] = []
        self.numbers = itertools.count(1)
        self.commands: list[Path] = []

    # -- the ground --

    def wait(self, work: Awaitable[T]) -> T:
        """Every request is answered, or its connection closed (I10)."""

        async def bounded() -> T:
            async with asyncio.timeout(ANSWER_S):
                return await work

        return self.runner.run(bounded())

    def start(self, failpoints: str = "") -> None:
        """A daemon and one editor."""
        self.fault = failpoints
        try:
            self.daemon = start_daemon(self.home, {"FAILPOINTS": failpoints})
        except AssertionError:
            assert failpoints, "a daemon without any fault did not start"
            self.daemon = start_daemon(self.home)
            self.fault = ""
        self.come()

    def come(self) -> None:
        stack = contextlib.AsyncExitStack()
        try:
            editor = self.wait(stack.enter_async_context(open_socket(self.home, [self.folder])))
        except OUTAGE:
            assert self.fault, "a daemon without any fault turned a client away"
            return  # it died while the editor was at its door
        self.editors.append((stack, editor))
        for one in self.known:
            with contextlib.suppress(*OUTAGE):
                self.wait(editor.attach(one.session_id, limit=1))

    def leave(self) -> None:
        stack, editor = self.editors.pop()
        self.listen(editor)
        with contextlib.suppress(*OUTAGE, OSError):
            self.wait(stack.aclose())

    def listen(self, editor: Editor) -> None:
        """Keep what a client was told; told twice, it is the same."""
        for one in self.known:
            for event in editor.events(one.session_id):
                assert one.told.setdefault(event["seq"], event) == event

    def again(self, failpoints: str = "") -> None:
        """The next daemon, after the last one's death."""
        assert self.daemon is not None
        if self.daemon.process.poll() is None:
            self.daemon.kill()
        while self.editors:
            self.leave()
        self.start(failpoints)

    @property
    def editor(self) -> Editor:
        """A client of a living daemon."""
        dead = self.daemon is None or self.daemon.process.poll() is not None
        if dead or not self.editors or self.editors[-1][1].lost.is_set():
            self.again()
        return self.editors[-1][1]

    # -- what can happen --

    @initialize(target=STEPS)
    def begin(self) -> Known:
        self.start()
        return self._new()

    def _new(self) -> Known:
        made = Known(self.wait(self.editor.create(self.folder, mode="auto")), self.folder)
        self.known.append(made)
        return made

    @rule(target=STEPS)
    def a_new_session(self) -> object:
        with contextlib.suppress(*OUTAGE):
            return self._new()
        return multiple()

    @rule(one=STEPS, waits=st.booleans(), what=st.sampled_from(["write", "patch", "run", "read"]))
    def a_run(self, one: Known, *, waits: bool, what: str) -> None:
        number = next(self.numbers)
        text = {
            "write": f"/write made{number}.txt\n{'z' * 2000}\n/end",
            "patch": f"/patch\n*** Begin Patch\n*** Add File: p{number}.txt\n+1\n*** Add File: q{number}.txt\n+1\n*** End Patch",
            "run": f"/run echo x >> out{number}.txt",
            "read": "/list",
        }[what]
        if what == "run":
            self.commands.append(self.folder / f"out{number}.txt")
        with contextlib.suppress(*OUTAGE):
            editor = self.editor
            one.runs.append(self.wait(editor.start(one.session_id, text, f"n{number}")))
            if waits:
                self.wait(editor.wait_for(lambda: not self._live(editor, one.runs[-1]), "its end"))

    def _live(self, editor: Editor, run_id: str) -> bool:
        return not any(event["runId"] == run_id for event in editor.events(type_="run_finished"))

    @rule(one=STEPS)
    def a_stop(self, one: Known) -> None:
        if one.runs:
            with contextlib.suppress(*OUTAGE):
                self.wait(self.editor.request("standfast/run/cancel", {"runId": one.runs[-1]}))

    @rule(one=STEPS)
    def a_release_of_the_queue(self, one: Known) -> None:
        with contextlib.suppress(*OUTAGE):
            self.wait(self.editor.request("standfast/queue/resume", {"sessionId": one.session_id}))

    @rule()
    def an_edit_by_the_person(self) -> None:
        (self.folder / "person.txt").write_text(str(next(self.numbers)))

    @rule()
    def an_editor_comes(self) -> None:
        if len(self.editors) < 4:
            _ = self.editor
            self.come()

    @rule()
    def an_editor_goes(self) -> None:
        if len(self.editors) > 1:
            self.leave()

    @rule()
    def kill_9(self) -> None:
        self.again()

    @rule(
        name=st.sampled_from(
            ["before_append", "after_append", "before_effect", "mid_effect", "before_result", "in_recovery"]
        ),
        nth=st.integers(1, 12),
    )
    def a_kill_to_come(self, name: str, nth: int) -> None:
        self.again(f"{name}=kill@{nth}")

    @rule(nth=st.integers(1, 12), code=st.sampled_from(["ENOSPC", "EIO", "EROFS"]))
    def a_disk_fault_to_come(self, nth: int, code: str) -> None:
        self.again(f"before_append=error@{nth}:{code}")

    # -- what must hold --

    @invariant()
    def nothing_that_was_told_is_lost(self) -> None:
        if self.daemon is None:
            return
        for _, editor in self.editors:
            self.listen(editor)
        for one in self.known:
            with contextlib.suppress(*(ConnectionLost, RequestFailed)):
                stored = self.wait(oracle.history(self.editor, one.session_id))
                oracle.check_log(oracle.Witness(one.session_id, events=list(one.told.values())), stored)
                _calls_are_told(stored)

    @invariant()
    def no_command_ran_twice(self) -> None:
        for out in self.commands:
            assert not out.exists() or out.read_text() in ("", "x\n"), f"{out.name} ran twice"

    @invariant()
    def the_daemon_stays_small(self) -> None:
        if self.daemon is not None and self.daemon.process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(self.daemon.pid)
                assert process.memory_info().rss < RSS_MAX
                assert process.num_fds() < FDS_MAX

    def teardown(self) -> None:
        """At the end of all: a daemon without faults; every run has its end, every call its answer, the tables are the log's."""
        try:
            if self.daemon is not None and self.known:
                self.again()
                self.again()
                for one in self.known:
                    stored = self.wait(oracle.history(self.editor, one.session_id))
                    oracle.check_log(oracle.Witness(one.session_id, events=list(one.told.values())), stored)
                    oracle.check_runs(stored)
                    oracle.check_calls(stored)
                assert oracle.leftovers(self.folder) == []
                self._the_store_is_well()
        finally:
            while self.editors:
                self.leave()
            end_daemon(self.home)
            self.runner.close()
            shutil.rmtree(self.place, ignore_errors=True)

    def _the_store_is_well(self) -> None:
        from standfast.store import doctor
        from support.daemon import places

        report = self.wait(doctor.check(places(self.home).store))
        assert report["ok"], report


def _calls_are_told(stored: list[Json]) -> None:
    """No call has two results; at any moment a started one may still be on its way."""
    results = [event["callId"] for event in stored if event["type"] == "tool_result"]
    assert len(results) == len(set(results)), "a call has two results"
