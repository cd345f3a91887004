"""Find the daemon or start it, from a client's side (design.md "Processes", F13, F19). Standard library only: an editor waits.

Whoever wants to start one holds the spawn lock meanwhile, so twenty editors that open at once make one daemon. A daemon
that is alive but silent (frozen, or its socket was swept away) is never replaced: its lock says that it is there.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from standfast.daemon import lock
from standfast.errors import StandfastError
from standfast.places import Places, find_places, private_directory

START_S = 30.0
"""How long a daemon may take to answer: imports on a busy machine, a migration."""
SILENT_S = 8.0
"""How long to wait for the socket of a daemon that is there; it looks after its socket every few seconds."""
STOP_S = 30.0
RETRY_S = 0.02
LOG_BYTES_MAX = 1 << 20
NO_SOCKET = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)


@dataclass(frozen=True, slots=True)
class Spawner:
    """The client's side of a daemon: the one of this environment, in which it is also started."""

    environ: Mapping[str, str]
    places: Places

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Spawner:
        return cls(environ, find_places(dict(environ)))

    def elsewhere(self, environ: Mapping[str, str]) -> Spawner:
        """The door to another environment's daemon (the demo has its own)."""
        return self.of(environ)

    def connect(self) -> socket.socket | None:
        """A connection to the running daemon, None if there is none. Starts nothing.

        Raises StandfastError (`DaemonForeign`) where somebody else listens at our path.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(str(self.places.socket))
        except NO_SOCKET:
            sock.close()
            return None
        except OSError as error:
            sock.close()
            raise StandfastError(
                "PlaceNotUsable", f"The socket {self.places.socket} cannot be reached ({error.strerror}). Is it yours?"
            ) from error
        if _peer(sock)[1] != os.geteuid():
            sock.close()
            raise StandfastError(
                "DaemonForeign",
                f"Another user listens at {self.places.socket}. Nothing was sent. Remove it, or set STANDFAST_HOME.",
            )
        return sock

    def reach(self) -> socket.socket:
        """A connection to the daemon, which is started if there is none.

        Raises StandfastError: `DaemonSilent` (one is there but does not listen), `DaemonNotStarted` (with its reason).
        """
        found = self.connect()
        if found is not None:
            return found
        private_directory(self.places.state)
        spawn_lock = lock.take(spawn_lock_path(self.places), wait_s=START_S)
        if spawn_lock is None:
            raise self._silent("Another process has been starting the daemon for a long time.")
        try:
            return self.connect() or self._start()
        finally:
            spawn_lock.release()

    def pid(self) -> int | None:
        """The running daemon's process id as the kernel tells it, None if there is none."""
        sock = self.connect()
        if sock is None:
            return None
        with sock:
            return _peer(sock)[0]

    def stop(self) -> bool:
        """End the running daemon in an orderly way and wait until it is gone. False: there was none.

        Raises StandfastError (`DaemonSilent`) if it does not end in time; it is then left as it is.
        """
        pid = self.pid()
        if pid is None:
            return False
        _signal(pid, signal.SIGTERM, STOP_S)
        until = time.monotonic() + STOP_S
        while lock.held(self.places.lock):
            if time.monotonic() > until:
                raise self._silent(f"The daemon (pid {pid}) was asked to end and has not.")
            time.sleep(RETRY_S)
        return True

    def drain(self) -> bool:
        """Let the running daemon end once no run of it goes on, however long that takes, and wait for it. False: there was none.

        Whoever waits may leave: the daemon ends all the same.
        """
        pid = self.pid()
        if pid is None:
            return False
        _signal(pid, signal.SIGUSR1, None)
        while lock.held(self.places.lock):
            time.sleep(RETRY_S)
        return True

    def _start(self) -> socket.socket:
        if lock.held(self.places.lock):
            return self._wait_for_socket()
        _run_detached(self.places, self.environ)
        found = self.connect()
        if found is None:
            raise self._silent("The daemon says that it is ready, but nothing answers at its socket.")
        return found

    def _wait_for_socket(self) -> socket.socket:
        until = time.monotonic() + SILENT_S
        while time.monotonic() < until:
            found = self.connect()
            if found is not None:
                return found
            if not lock.held(self.places.lock):  # it ended meanwhile
                return self._start()
            time.sleep(RETRY_S)
        raise self._silent(
            f"A daemon (pid {lock.signature(self.places.lock).get('pid', '?')}) is there, but does not listen."
        )

    def _silent(self, what: str) -> StandfastError:
        return StandfastError(
            "DaemonSilent",
            f"{what} Your sessions are safe and no second daemon was started. "
            f"If it stays so, end that process and try again; its log is {self.places.log}.",
        )


def spawn_lock_path(places: Places) -> Path:
    return places.state / "spawn.lock"


def _run_detached(places: Places, environ: Mapping[str, str]) -> None:
    """Start a daemon and wait until it says over a pipe that its socket answers, or why not."""
    import subprocess

    log = _open_raw_log(places)
    ready, report = os.pipe()
    try:
        starter = subprocess.Popen(
            [sys.executable, "-P", "-X", "no_debug_ranges", "-m", "standfast", "daemon", "run", "--detach", "--report", str(report)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(report,), cwd="/", start_new_session=True,
            env=dict(environ),
        )  # fmt: skip
    finally:
        os.close(report)
        os.close(log)
    with os.fdopen(ready, "rb") as pipe:
        starter.wait()  # the daemon's first process ends as soon as it has forked
        said = _read_to_end(pipe.fileno(), START_S)
    if said == b"ready\n":
        return
    try:
        told = json.loads(said)
        raise StandfastError(str(told["reason"]), str(told["message"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StandfastError(
            "DaemonNotStarted",
            f"The daemon did not start. Your sessions are safe. Its last words are in {raw_log_path(places)}.",
        ) from error


def raw_log_path(places: Places) -> Path:
    """Where the daemon's bare output goes: what a library or the interpreter itself prints."""
    return places.log.with_suffix(".err")


def _open_raw_log(places: Places) -> int:
    private_directory(places.log.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(raw_log_path(places), flags, 0o600)
        os.fchmod(fd, 0o600)
        if os.fstat(fd).st_size > LOG_BYTES_MAX:
            os.ftruncate(fd, 0)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)  # a full or read-only disk must not keep the daemon away
    return fd


def _read_to_end(fd: int, wait_s: float) -> bytes:
    until = time.monotonic() + wait_s
    said = b""
    while (left := until - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
        piece = os.read(fd, 4096)
        if not piece:
            break
        said += piece
    return said


def _peer(sock: socket.socket) -> tuple[int, int]:
    """(pid, uid) of who listens there, from the kernel."""
    if sys.platform != "linux":
        return 0, os.geteuid()
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def _signal(pid: int, number: signal.Signals, wait_s: float | None) -> None:
    """A signal to just this process (a pid that was reused meanwhile is not touched), and wait for its end; None: without limit."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(process, number)
        select.select([process], [], [], wait_s)
    except ProcessLookupError:
        return
    finally:
        os.close(process)
