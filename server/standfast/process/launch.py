"""Start commands under supervisors, take over those of a daemon that died, stop them (issue C part 1).

`Commands` is this daemon's own: it holds the write end of each command's `control` FIFO, which is how a supervisor knows
that its daemon lives. The truth is in the record directories; nothing here is needed to find it again after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import standfast
from standfast.cancelling import to_the_end
from standfast.clock import Clock, SystemClock
from standfast.failpoints import hit
from standfast.process import placeholders
from standfast.process import record as records
from standfast.process.identity import Identity, alive
from standfast.process.judge import State, judge, look
from standfast.process.orphan import end_unsupervised
from standfast.process.sandbox import UNCONFINED, Sandbox
from standfast.process.supervised import Supervised
from standfast.shortage import want_of

STOP_S = 12.0
"""How long a supervisor may take to end its tree (2 s SIGTERM, 5 s SIGKILL) before it is ended itself."""
START_S = 10.0
LOOK_S = 0.02
_BOOT = "import sys; sys.path.append(sys.argv[1]); from standfast.process.supervisor import main; sys.exit(main(sys.argv[2]))"
_IMPORT_ROOT = str(Path(standfast.__file__).parent.parent)


class Commands:
    """All commands that this daemon started or adopted and that have not ended."""

    def __init__(
        self,
        *,
        grace_ms: int = 60_000,
        umask: int = 0o022,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        sandbox: Sandbox = UNCONFINED,
        network: bool = False,
    ) -> None:
        """`grace_ms`: how long a command stays without a daemon. `umask`: the person's, for what commands make.
        `environ`: where their allow-listed variables come from (default: this process's own). `sandbox`: what confines them;
        `network`: they have the network without asking for it.
        """
        self.clock: Clock = clock or SystemClock()
        self.grace_ms = grace_ms
        self.umask = umask
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.sandbox = sandbox
        self.network = network
        self._held: dict[Path, Supervised] = {}

    def __len__(self) -> int:
        """How many live (the daemon does not exit while there is one)."""
        return len(self._held)

    def supervisors(self) -> frozenset[int]:
        """The pids of the supervisors of living commands: whatever descends from one is a command's process."""
        return frozenset(supervised.pid for supervised in self._held.values())

    def held(self, directory: Path) -> Supervised | None:
        """The hold on the command of a record directory, None if it ended or is not ours (yet)."""
        return self._held.get(directory)

    async def start(self, directory: Path, spec: records.Spec, environment: Mapping[str, str]) -> Supervised:
        """Start a command whose intent is durable. Once only: raises FileExistsError where `directory` was ever used."""
        spec = spec._replace(grace_ms=self.grace_ms, umask=self.umask)

        async def spawn() -> Supervised:
            pid, control = await asyncio.to_thread(_spawn, directory, spec, dict(environment))
            return self._hold(directory, pid, control, child=True)

        return await to_the_end(spawn())

    async def state(self, directory: Path) -> State:
        """`judge`, and where the command lives, adopted: so asking keeps it alive. Waits while it is only starting."""
        deadline = self.clock.monotonic() + START_S
        while True:
            ours = directory in self._held  # a supervisor that we just started must not lose its claim to us
            state = await asyncio.to_thread(look if ours else judge, directory)
            if state.found != "starting" or self.clock.monotonic() > deadline:
                break
            await asyncio.sleep(LOOK_S)
        if state.found == "running" and state.record is not None:
            await self._adopt(directory, state.record.supervisor)
        return state

    async def adopt_all(self, spool: Path) -> list[records.Record]:
        """At daemon start: take over every command that still lives, so that none is ended for want of a daemon."""
        adopted: list[records.Record] = []
        await asyncio.to_thread(placeholders.clear, str(stand_ins(spool)))
        for directory, record in await asyncio.to_thread(living, spool):
            if await self._adopt(directory, record.supervisor):
                adopted.append(record)
        return adopted

    async def wait(self, directory: Path) -> State:
        """Wait until the command has ended; what became of it. With its supervisor gone, until the command is gone.

        While no record can be opened for want of descriptors, it is asked again: its end is written and does not go away (F20).
        """
        while True:
            if (supervised := self._held.get(directory)) is not None:
                await supervised.ended()
            try:
                state = await self.state(directory)
            except OSError as error:
                if want_of(error) is None:
                    raise
                await asyncio.sleep(10 * LOOK_S)
                continue
            if directory in self._held:
                continue
            if state.found == "unsupervised":
                await asyncio.sleep(10 * LOOK_S)
            elif state.found not in ("running", "starting"):
                if state.found == "lost":
                    await _clear(directory)
                return state
            else:  # it ended, or is ending, between the two looks
                await asyncio.sleep(LOOK_S)

    async def stop(self, directory: Path) -> State:
        """End the whole tree of a command and wait until it is gone; one that has not begun never will."""
        try:
            state = await asyncio.to_thread(judge, directory)
        except OSError:
            if directory not in self._held:
                raise
            state = State("running")  # it cannot be looked at for want of descriptors, but is ours, and must end (F20)
        if state.found == "running" and directory not in self._held:
            state = await self.state(directory)
        supervised = self._held.get(directory)
        if supervised is not None:
            supervised.tell(b"stop")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await supervised.ended()
            state = await asyncio.to_thread(judge, directory)
        if state.record is not None and state.found in ("running", "unsupervised"):
            await end_unsupervised(directory, state.record, self.clock)
            await _clear(directory)
            state = await asyncio.to_thread(judge, directory)
        return state

    async def sweep(self, spool: Path, *, before_ms: int, settled: Callable[[str], Awaitable[bool]]) -> int:
        """Remove the records of commands that ended before a time (ms UTC) and whose call is `settled` (by call id: it has
        a result in the log, so nobody will ask the record again). Returns how many.
        """
        removed = 0
        for directory, record in await asyncio.to_thread(ended, spool, before_ms):
            if directory not in self._held and await settled(record.call_id):
                await asyncio.to_thread(shutil.rmtree, directory)
                removed += 1
        return removed

    def close(self) -> None:
        """Let go of all: the daemon ends. Each command goes on for its grace time, or until the next daemon takes it."""
        for supervised in list(self._held.values()):
            supervised.let_go()
        self._held.clear()

    async def _adopt(self, directory: Path, supervisor: Identity) -> bool:
        if directory in self._held:
            return True
        control = await asyncio.to_thread(_open_control, directory)
        if control is None:
            return False
        if directory in self._held:
            os.close(control)
            return True
        supervised = self._hold(directory, supervisor.pid, control, child=False)
        if not await asyncio.to_thread(alive, supervisor):  # asked only now, so that we do not watch another of its pid
            supervised.give_up()
            return False
        return supervised.tell(b"adopt")

    def _hold(self, directory: Path, pid: int, control: int, *, child: bool) -> Supervised:
        supervised = Supervised(directory, pid, control, child=child, ended=self._forget)
        self._held[directory] = supervised
        return supervised

    def _forget(self, directory: Path) -> None:
        self._held.pop(directory, None)


async def _clear(directory: Path) -> None:
    """What the supervisor of this command did not live to remove."""
    await asyncio.to_thread(placeholders.clear, str(stand_ins(directory.parent)))


def stand_ins(spool: Path) -> Path:
    """Where the locks lie that say which stand-ins a spool directory's commands need (`placeholders.py`)."""
    return spool.with_name("stand-ins")


def living(spool: Path) -> list[tuple[Path, records.Record]]:
    """The commands beneath a spool directory that live under a supervisor. Claims nothing."""
    found: list[tuple[Path, records.Record]] = []
    for directory in sorted(spool.iterdir()) if spool.is_dir() else []:
        with contextlib.suppress(records.LaterVersion, OSError):
            record = records.read_record(str(directory))
            if record and records.read_exit(str(directory)) is None and alive(record.supervisor):
                found.append((directory, record))
    return found


def ended(spool: Path, before_ms: int) -> list[tuple[Path, records.Record]]:
    """The commands beneath a spool directory that ended before a time."""
    found: list[tuple[Path, records.Record]] = []
    for directory in sorted(spool.iterdir()) if spool.is_dir() else []:
        with contextlib.suppress(records.LaterVersion, OSError):
            record, end = records.read_record(str(directory)), records.read_exit(str(directory))
            if record and end and end.ended_at_ms < before_ms:
                found.append((directory, record))
    return found


def _spawn(directory: Path, spec: records.Spec, environment: dict[str, str]) -> tuple[int, int]:
    """Make the record directory and start the supervisor: (its pid, our write end of `control`)."""
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700)
    records.put_spec(str(directory), spec)
    fifo = directory / records.CONTROL
    os.mkfifo(fifo, 0o600)
    records.sync(str(directory.parent))
    theirs = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ours = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        try:
            hit("in_spawn_before")
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _BOOT, _IMPORT_ROOT, str(directory)],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_DUP2, 0, 1),
                    (os.POSIX_SPAWN_DUP2, 0, 2),
                    (os.POSIX_SPAWN_DUP2, theirs, 3),
                ],
                setsid=True,
                setsigmask=[],
            )
            hit("in_spawn_after")
        except BaseException:
            os.close(ours)
            raise
    finally:
        os.close(theirs)
    return pid, ours


def _open_control(directory: Path) -> int | None:
    """The write end of a supervisor's `control`, None if no supervisor reads it."""
    try:
        return os.open(directory / records.CONTROL, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
