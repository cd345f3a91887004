"""The daemon's life: lock, socket, clients, idle exit, orderly end (design.md "Processes", "Daemon").

Order at start: what the process owes its user (umask, stdio, memory), the lock, the socket, then the parts
(`compose`), then "ready". Order at the end: no new clients, runs marked, store closed, socket and lock gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from standfast.daemon import harden, lock
from standfast.daemon.listener import Listener, listen
from standfast.daemon.peers import refusal
from standfast.daemon.spawn import Spawner, raw_log_path, spawn_lock_path
from standfast.errors import StandfastError
from standfast.places import Places, find_places, private_directory
from standfast.shortage import want_of

if TYPE_CHECKING:
    from standfast.daemon.compose import Daemon

TICK_S = 2.0
"""How often the daemon looks after its socket, its lock and whether it is still needed."""
LOCK_WAIT_S = 1.0
"""Longer than a client's look at the lock takes."""
FULL_S = 0.2
"""Pause after an accept that failed, and between looks whether there is room again."""
ROOM = 4
"""Descriptors that a client, a patch or a command needs at once."""
FULL = (
    "The daemon has as many files open as it may. New windows wait at the door, and what needs another file fails and says so. "
    "Everything is being saved. Close windows or commands that are not needed, or raise the limit (`ulimit -n`) and restart the daemon."
)


def main(words: list[str]) -> int:
    """`standfast daemon run [--detach] [--report FD]`: be the daemon until told to end or no longer needed."""
    report = Report(int(words[words.index("--report") + 1]) if "--report" in words else None)
    if "--detach" in words:
        harden.detach()
        harden.guard_stdio()
    harden.keep_memory_private()
    harden.keep_small()
    places = find_places()
    try:
        private_directory(places.state)
        ours = _take_over(places)
    except StandfastError as error:
        return report.failed(error)
    try:
        code = asyncio.run(_live(places, ours, report))
    except StandfastError as error:
        code = report.failed(error)
    except Exception:  # noqa: BLE001 - the top of the process
        code = report.crashed(places)
    sys.stderr.flush()
    os._exit(code)  # whatever thread is left must not keep a daemon that serves nobody


@dataclass(slots=True)
class Report:
    """What whoever started us is told, over a pipe: ready, or why not."""

    fd: int | None

    def ready(self) -> None:
        self._say(b"ready\n")

    def failed(self, error: StandfastError) -> int:
        sys.stderr.write(f"standfast: {error.message}\n")
        self._say(json.dumps({"reason": error.reason, "message": error.message}).encode())
        return 1

    def crashed(self, places: Places) -> int:
        """A defect of ours, or a library that cannot be loaded: all of it in the side log, one sentence for the person."""
        traceback.print_exc()
        where = raw_log_path(places)
        return self.failed(
            StandfastError(
                "DaemonNotStarted", f"The daemon ended because of a defect. Your sessions are safe. See {where}."
            )
        )

    def _say(self, words: bytes) -> None:
        if self.fd is None:
            return
        with contextlib.suppress(OSError):  # the starter has gone; the daemon goes on for the next one
            os.write(self.fd, words)
        os.close(self.fd)
        self.fd = None


def _take_over(places: Places) -> lock.Lock:
    """Become the one daemon of this store. Raises StandfastError (`DaemonRunning`)."""
    ours = lock.take(places.lock, wait_s=LOCK_WAIT_S)
    if ours is None:
        raise StandfastError("DaemonRunning", f"A daemon for {places.state} is running already. Nothing was changed.")
    other = Spawner(os.environ, places).connect()
    if other is not None:  # its lock file was deleted under it, but it serves
        other.close()
        ours.release()
        raise StandfastError("DaemonRunning", f"A daemon answers at {places.socket} already. Nothing was changed.")
    return ours


async def _live(places: Places, ours: lock.Lock, report: Report) -> int:
    from standfast.daemon.compose import compose
    from standfast.daemon.log import open_log

    open_log(places.log)
    house = House(places, ours, listen(places.socket))
    house.obey_signals()
    try:
        async with compose(places, clients=lambda: house.clients) as parts:
            ours.sign(pid=os.getpid(), startedAtMs=parts.clock.now_ms(), socket=str(places.socket))
            await house.serve(parts, report.ready)
    finally:
        house.close()
    return 0


@dataclass(slots=True)
class House:
    """The door, its locks and who is inside."""

    places: Places
    lock: lock.Lock
    listener: Listener
    draining: bool = False
    """Asked to end as soon as no run goes on (an upgrade); whoever comes meanwhile is served as ever."""
    spawn_lock: lock.Lock | None = None
    """Held from the decision to leave to the very end, so that the next daemon is not started too early."""
    _inside: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def leaving(self) -> bool:
        return self._over.is_set()

    @property
    def clients(self) -> int:
        return len(self._inside)

    def close(self) -> None:
        self.listener.close()
        self.lock.release()
        if self.spawn_lock is not None:
            self.spawn_lock.release()

    def obey_signals(self) -> None:
        """SIGTERM and SIGINT end it in order, from the first moment on, SIGUSR1 once no run goes on; a terminal that closes does not."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)
        loop.add_signal_handler(signal.SIGUSR1, setattr, self, "draining", True)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)

    async def serve(self, parts: Daemon, ready: Callable[[], None]) -> None:
        """Let clients in until SIGTERM, SIGINT or the idle exit, then end in order."""
        async with asyncio.TaskGroup() as work:
            door = Door(self, parts, work)
            door.open()
            ready()
            chore = work.create_task(self._look_after(door))
            await self._over.wait()
            chore.cancel()
            door.shut()
            self.listener.unlink()
            await parts.stop()
            for task in self._inside:
                task.cancel()

    async def _look_after(self, door: Door) -> None:
        """Keep the socket and the lock in place; leave when nobody has needed us for long enough."""
        loop, parts = asyncio.get_running_loop(), door.parts
        needed_at = loop.time()
        while True:
            await asyncio.sleep(min(TICK_S, max(0.05, parts.idle_exit_s / 4)))
            door.look_for_room()
            try:
                self._keep_in_place(door)
                if self.draining:
                    self._drain(parts)
                if self.clients or parts.busy():
                    needed_at = loop.time()
                elif loop.time() - needed_at >= parts.idle_exit_s:
                    self._leave_if_idle(door)
            except (
                StandfastError
            ) as error:  # the state directory is gone: without a lock there may soon be a second daemon
                parts.log.error("place_lost", extra={"why": error.message})
                self._over.set()
            except OSError as error:  # no descriptor is left: at the next look there may be one (F20)
                parts.log.warning("not_looked_after", extra={"why": error.strerror})

    def _drain(self, parts: Daemon) -> None:
        """Looked at from time to time: a message that is sent or queued meanwhile is carried out too."""
        runs = parts.sessions.live_runs()
        parts.log.info("draining", extra={"runs": runs})
        if not runs:
            self._over.set()

    def _keep_in_place(self, door: Door) -> None:
        if not self.lock.still_ours():
            self._lock_again(door.parts)
        if not self.listener.still_there():
            door.parts.log.warning("socket_was_removed", extra={"path": str(self.places.socket)})
            door.replace()

    def _lock_again(self, parts: Daemon) -> None:
        """The lock's file was deleted: make it anew. If another daemon was quicker, this one ends (never two on a store)."""
        fresh = lock.take(self.places.lock, wait_s=0)
        if fresh is None:
            parts.log.error("another_daemon_took_over")
            self._over.set()
            return
        fresh.sign(pid=os.getpid(), socket=str(self.places.socket))
        self.lock.release()
        self.lock = fresh

    def _leave_if_idle(self, door: Door) -> None:
        """End, unless somebody is at the door: with the spawn lock held and the socket's file gone nobody can come newly,
        and whoever came before still stands in the accept queue."""
        spawn = lock.take(spawn_lock_path(self.places), wait_s=0)
        if spawn is None:
            return  # somebody is about to connect
        self.listener.unlink()
        door.let_in()
        if self.clients:
            door.replace()
            spawn.release()
            return
        door.parts.log.info("idle_exit")
        self.spawn_lock = spawn
        self._over.set()

    def enter(self, task: asyncio.Task[None]) -> None:
        self._inside.add(task)
        task.add_done_callback(self._inside.discard)


@dataclass(slots=True)
class Door:
    """Takes connections off the socket and gives each its task."""

    house: House
    parts: Daemon
    work: asyncio.TaskGroup
    full: bool = False
    """There is no room for another client, and people were told (F20)."""
    pausing: asyncio.TimerHandle | None = None
    unseen: list[socket.socket] = field(default_factory=list[socket.socket])
    """Accepted, but who they are could not be looked at: they wait, as those who were not accepted do."""

    def open(self) -> None:
        if not self.house.leaving and self.pausing is None:
            asyncio.get_running_loop().add_reader(self.house.listener.sock.fileno(), self.let_in)

    def shut(self) -> None:
        asyncio.get_running_loop().remove_reader(self.house.listener.sock.fileno())

    def replace(self) -> None:
        """Bind at the path again. If that fails it is tried at the next look."""
        try:
            fresh = listen(self.house.places.socket)
        except StandfastError as error:
            self.parts.log.error("socket_cannot_be_bound", extra={"why": error.message})
            return
        self.let_in()
        self.shut()
        self.house.listener.sock.close()
        self.house.listener = fresh
        self.open()

    def let_in(self) -> None:
        """Everybody who waits. A connection that cannot be accepted (no descriptors left, F20) waits until there is room."""
        while True:
            try:
                sock, _ = self.house.listener.sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if want_of(error) is None:
                    self.parts.log.warning("accept_failed", extra={"why": error.strerror})
                self._wait_for_room()
                return
            self._admit(sock)

    def look_for_room(self) -> None:
        """Whether more files could be opened; people are told when that changes."""
        found: list[int] = []
        with contextlib.suppress(OSError):
            found.extend(os.dup(self.house.listener.sock.fileno()) for _ in range(ROOM))
        full = len(found) < ROOM
        for descriptor in found:
            os.close(descriptor)
        if full != self.full:
            self.full = full
            self.parts.log.warning("no_descriptors_left" if full else "descriptors_are_free_again")
            self.parts.trouble("TooManyOpenFiles", FULL if full else None)

    def _wait_for_room(self) -> None:
        """Nobody is let in meanwhile: a door that stays readable would keep the loop busy with failing."""
        self.shut()
        self.look_for_room()
        if self.pausing is None:
            self.pausing = asyncio.get_running_loop().call_later(FULL_S, self._try_again)

    def _try_again(self) -> None:
        self.pausing = None
        waiting, self.unseen = self.unseen, []
        for sock in waiting:
            if self.house.leaving:
                sock.close()
            else:
                self._admit(sock)
        self.open()

    def _admit(self, sock: socket.socket) -> None:
        try:
            why = refusal(sock, self.parts.commands.supervisors())
        except OSError:  # nobody is let in who could not be looked at
            self.unseen.append(sock)
            self._wait_for_room()
            return
        if why is not None:
            self.parts.log.warning("client_refused", extra={"why": why})
            sock.close()
            return
        sock.setblocking(False)
        self.house.enter(self.work.create_task(self._serve_one(sock)))

    async def _serve_one(self, sock: socket.socket) -> None:
        """One client, start to end. Whatever goes wrong with it ends here, not in the daemon."""
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_unix_connection(sock=sock)
            await self.parts.serve_client(reader, writer)
        except Exception:  # the top of a client's life: said in the log, the others notice nothing
            self.parts.log.exception("client_failed")
        finally:
            if writer is None:
                sock.close()
            else:
                writer.close()
