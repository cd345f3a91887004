"""The owner of one command: starts it, keeps its output and its end on disk, and outlives the daemon (design.md "Processes").

    python -I -S -c BOOT <import root> <record directory>        (see `launch.py`; standard library only, 25 ms)

It knows its daemon by the write end of the `control` FIFO. When nobody holds that any more, it waits the grace time for a
new daemon (`adopt`); if none comes it ends the whole tree and says `abandoned`. Before it begins it claims the command;
where a verifier was first it stands down, so a command never starts after it was judged.
The command cannot run before `record.json` is durable: its process waits at a gate, and dies there with its supervisor.
Linux only today (/proc, subreaper): elsewhere it stands down at its claim, and the call says that it could not be started.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import select
import signal
import sys
import time

from standfast.process import confine, placeholders, tree
from standfast.process import record as records
from standfast.process.identity import Stat, identify

CONTROL_FD = 3
"""Where the launcher puts the read end of the control FIFO."""
TERM_S = 2.0
"""From SIGTERM to SIGKILL."""
KILL_S = 5.0
"""From SIGKILL until it gives up on a process that the kernel cannot end (it says how many in `leftBehind`)."""
KILL_AGAIN_S = 0.02
"""Until it looks again for what forked meanwhile."""
LINGER_S = 0.5
"""How long helpers may outlive the command's own process before they are ended."""
CHUNK = 64 * 1024
TAIL = 64 * 1024
"""Bytes kept from the end of an output that is longer than its cap."""
INPUT_MAX = 1024 * 1024
PR_SET_CHILD_SUBREAPER = 36
IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""What a closing terminal sends: the supervisor stays."""
CHANGED_SIGNALS = (*IGNORED_SIGNALS, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""Set differently in this process (by us or by Python): the command gets the defaults."""
RECORD_TRIES = 30
"""Seconds that it goes on trying to write the exit record on a full disk."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Output:
    """The spool file: everything up to the cap, then only the last bytes, with a note between them."""

    def __init__(self, path: str, limit: int) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self.room = limit
        self.tail = b""
        self.dropped = 0

    def add(self, data: bytes) -> None:
        kept = data[: self.room]
        self._write(kept)
        self.room -= len(kept)
        rest = self.tail + data[len(kept) :]
        self.tail = rest[-TAIL:]
        self.dropped += len(rest) - len(self.tail)

    def close(self) -> None:
        if self.dropped:
            self._write(f"\n[… {self.dropped} bytes over the limit were not kept …]\n".encode())
        self._write(self.tail)
        with contextlib.suppress(OSError):
            os.fsync(self.file)
        os.close(self.file)

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self.file, data) :]
            except OSError:  # the disk is full: the command goes on, what cannot be kept is counted
                self.dropped += len(data)
                return


class Supervisor:
    """One command from its claim to its exit record."""

    def __init__(self, directory: str, spec: records.Spec) -> None:
        self.directory = directory
        self.spec = spec
        self.poll = select.poll()
        self.control = CONTROL_FD
        self.line = b""
        self.main = 0
        self.status: int | None = None
        self.started_at_ms = 0
        self.why = "exited"
        self.left_behind = 0
        self.stage = "running"
        self.deadline: float | None = None
        self.timeout: float | None = None
        self.abandon: float | None = None
        self.give_up = 0.0
        self.pipe = -1
        self.input = -1
        self.unsent = b""

    # -- begin --------------------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Claim and start the command. False: a verifier was first, or the daemon is gone already; nothing was started."""
        if not sys.platform.startswith("linux") or self._hung_up() or not records.claim(self.directory, "supervisor"):
            return False
        _become_subreaper()
        os.set_inheritable(self.control, False)
        self.output = Output(os.path.join(self.directory, records.OUTPUT), self.spec.output_max)
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.signal(signal.SIGTERM, self._on_term)
        self.pipe, output = os.pipe()
        if self.spec.background:
            stdin, self.input = os.pipe()
            os.set_blocking(self.input, False)
        else:
            stdin = os.open(os.devnull, os.O_RDONLY)
        self.placeholders = placeholders.hold(self.spec.placeholder_lock, self.spec.placeholders)
        gate, gate_write = os.pipe()
        self.main = os.fork()
        if self.main == 0:
            os.close(gate_write)
            _execute(self.spec, stdin, output, gate, self.placeholders)
        for handle in (stdin, output, gate):
            os.close(handle)
        self._record()
        os.write(gate_write, b"!")
        os.close(gate_write)
        os.set_blocking(self.pipe, False)
        if self.spec.timeout_ms is not None:
            self.timeout = time.monotonic() + self.spec.timeout_ms / 1000
        return True

    def _on_term(self, *_: object) -> None:
        """Somebody ends the supervisor itself: its command ends with it."""
        self.end("stopped")

    def _hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _record(self) -> None:
        process, own = identify(self.main), identify(os.getpid())
        if process is None or own is None:
            raise SystemExit("the command's process ended at its gate")
        self.started_at_ms = now_ms()
        spec = self.spec
        records.put_record(
            self.directory,
            records.Record(
                process=process,
                supervisor=own,
                command=spec.command,
                cwd=spec.cwd,
                call_id=spec.call_id,
                session_id=spec.session_id,
                operation_id=spec.operation_id,
                background=spec.background,
                started_at_ms=self.started_at_ms,
            ),
        )

    # -- the loop -----------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Serve output, input, control and time until no process of the command is left; then write how it ended."""
        for handle in (self.control, self.pipe, self.wake):
            self.poll.register(handle, select.POLLIN)
        while self._reap():
            self._clocks()
            for handle, event in self.poll.poll(self._wait_ms()):
                self._serve(handle, event)
        while self.pipe >= 0 and self._read_output():
            pass
        self._finish()

    def _serve(self, handle: int, event: int) -> None:
        if handle == self.pipe:
            self._read_output()
        elif handle == self.control:
            self._read_control(event)
        elif handle == self.input:
            self._write_input()
        else:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, CHUNK)

    def _reap(self) -> bool:
        """Collect the dead. False once nothing of the command is left (as subreaper we see all of it)."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return self.stage != "given up"
            if pid == self.main:
                self.status = status
                if self.stage == "running":
                    self.stage, self.deadline = "lingering", time.monotonic() + LINGER_S

    def _clocks(self) -> None:
        """Whatever is due now: time-out, grace, and the steps of an end."""
        now = time.monotonic()
        if self.timeout is not None and now >= self.timeout:
            self.end("timed_out")
        if self.abandon is not None and now >= self.abandon:
            self.end("abandoned")
        if self.deadline is None or now < self.deadline:
            return
        if self.stage == "lingering":
            self._terminate()
        elif self.stage == "ending":
            self.stage, self.give_up = "killing", now + KILL_S
            self._kill(now)
        elif self.stage == "killing" and now < self.give_up:
            self._kill(now)
        elif self.stage == "killing":
            self.stage, self.left_behind = "given up", len(self._tree())

    def _kill(self, now: float) -> None:
        """Again and again until nothing is left: what forks while we look is met the next time. In a namespace of its own all ends at
        once with the first process of it, a fork bomb too."""
        self.deadline = now + KILL_AGAIN_S
        confinement = confine.from_spec(self.spec.confinement)
        if confinement is not None and confinement.level == "full":
            tree.kill_outermost(os.getpid())
        else:
            tree.kill(self._tree)

    def _wait_ms(self) -> int | None:
        due = [moment for moment in (self.timeout, self.abandon, self.deadline) if moment is not None]
        return max(0, int((min(due) - time.monotonic()) * 1000) + 1) if due else None

    def end(self, why: str) -> None:
        """End the whole tree: SIGTERM now, SIGKILL to what is left after TERM_S. The first reason stands."""
        self.timeout = self.abandon = None
        if self.stage in ("running", "lingering"):
            if self.stage == "running":
                self.why = why
            self._terminate()

    def _terminate(self) -> None:
        self.stage, self.deadline = "ending", time.monotonic() + TERM_S
        processes = self._tree()
        self.left_behind = len(processes) if self.status is not None else 0
        tree.terminate(processes)

    def _tree(self) -> list[Stat]:
        return tree.descendants(os.getpid())

    # -- output, input, control ---------------------------------------------------------------------------------------

    def _read_output(self) -> bool:
        """Take what there is. False: nothing now, or the end."""
        try:
            data = os.read(self.pipe, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self.output.add(data)
            return True
        self.poll.unregister(self.pipe)
        os.close(self.pipe)
        self.pipe = -1
        return False

    def _read_control(self, event: int) -> None:
        data = b""
        if event & select.POLLIN:
            data = os.read(self.control, CHUNK)
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            self._obey(line)
        if not data:
            self._wait_for_adoption()

    def _wait_for_adoption(self) -> None:
        """The daemon is gone. A newly opened read end does not report the old hang-up again, so we wait at rest."""
        path = os.path.join(self.directory, records.CONTROL)
        again = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll.unregister(self.control)
        os.close(self.control)
        self.control, self.line = again, b""
        self.poll.register(again, select.POLLIN)
        if self.abandon is None and self.stage in ("running", "lingering"):
            self.abandon = time.monotonic() + self.spec.grace_ms / 1000

    def _obey(self, line: bytes) -> None:
        self.abandon = None
        word, _, rest = line.partition(b" ")
        if word == b"stop":
            self.end("stopped")
        elif word == b"input" and self.input >= 0 and len(self.unsent) < INPUT_MAX:
            self.unsent += binascii.a2b_base64(rest)
            self.poll.register(self.input, select.POLLOUT)
        # `adopt` needs no more than the new write end; words of a later version are passed over.

    def _write_input(self) -> None:
        try:
            self.unsent = self.unsent[os.write(self.input, self.unsent) :]
        except BlockingIOError:
            return
        except OSError:  # the command closed its input
            self.unsent = b""
        if not self.unsent:
            self.poll.unregister(self.input)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self.output.close()
        placeholders.let_go(self.spec.placeholder_lock, self.placeholders)
        aside = placeholders.set_aside(self.spec.set_aside, self.spec.call_id)
        confine.leave(confine.from_spec(self.spec.confinement))
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        end = records.Exit(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            started_at_ms=self.started_at_ms,
            ended_at_ms=now_ms(),
            why=self.why,
            dropped_bytes=self.output.dropped,
            left_behind=self.left_behind,
            set_aside=tuple(aside),
        )
        for _ in range(RECORD_TRIES):
            try:
                records.put_exit(self.directory, end)
                return
            except OSError:
                time.sleep(1)


def _ignore(*_: object) -> None:
    """A handler, so that the wake-up descriptor is written."""


def _become_subreaper() -> None:
    """Orphaned grandchildren become ours instead of init's."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _execute(spec: records.Spec, stdin: int, output: int, gate: int, lock: int) -> None:
    """In the new process: a session of its own, only descriptors 0 to 2, wait for the gate, become the command."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        for own, theirs in ((stdin, 0), (output, 1), (output, 2)):
            os.dup2(own, theirs)
        if os.read(gate, 1) != b"!":
            os._exit(0)
        os.umask(spec.umask)
        os.chdir(spec.cwd)
        if (confinement := confine.from_spec(spec.confinement)) is not None:
            placeholders.hand_on(lock)
            confine.enter(confinement)
        os.execve(spec.argv[0], spec.argv, {**os.environ, "PWD": spec.cwd})
    except (OSError, KeyError) as error:
        os.write(2, f"The command could not be started: {error}\n".encode())
        os._exit(126 if isinstance(error, PermissionError) else 127)
    finally:
        os._exit(127)


def main(directory: str) -> int:
    """Run the command of a record directory to its end. 0: its exit is recorded; 1: stood down, nothing was started."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    os.closerange(CONTROL_FD + 1, 4096)
    spec = records.read_spec(directory)
    if spec is None:
        return 1
    supervisor = Supervisor(directory, spec)
    if not supervisor.begin():
        return 1
    supervisor.watch()
    return 0
