"""`standfast lsp`: what an editor starts. Finds or starts the daemon, then pumps bytes both ways (design.md "Processes").

It understands nothing but the three messages that decide how it ends: 0 after `shutdown`, 1 when the editor left without
it or the daemon was lost. It never outlives its editor (d13) nor the daemon by more than 2 s. Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import time
from dataclasses import dataclass, field

from standfast.daemon.frames import FrameWatcher
from standfast.daemon.spawn import Spawner
from standfast.errors import StandfastError

PIECE = 64 * 1024
LAST_WORDS_S = 1.0
"""After the editor's end: how long the daemon may take to finish what it was saying."""
ALIVE_CHECK_S = 2.0
INTERNAL_ERROR = -32603


def main() -> int:
    """Pump until either side is gone. Does not return while both live; returns the process's exit code."""
    wire = _claim_stdout()
    try:
        daemon = Spawner.of(os.environ).reach()
    except StandfastError as error:
        sys.stderr.write(f"standfast: {error.message}\n")
        _refuse_initialize(wire, error)
        return 1
    pump = Pump(daemon, wire)
    code = pump.run()
    os._exit(code)  # a thread may still wait for an editor that never closes its end


def _claim_stdout() -> int:
    """Keep the wire for ourselves: whatever else prints goes to stderr (d17)."""
    wire = os.dup(1)  # not inherited by the daemon that we may start
    os.dup2(2, 1)
    return wire


@dataclass(slots=True)
class Pump:
    """Bytes between the editor (fd 0 and `wire`) and the daemon's socket."""

    daemon: socket.socket
    wire: int
    watcher: FrameWatcher = field(default_factory=FrameWatcher)
    _editor_gone: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> int:
        for work in (self._from_editor, self._from_daemon):
            threading.Thread(target=work, daemon=True).start()
        self._ended.wait()
        return 0 if self.watcher.saw_shutdown and self._editor_gone.is_set() else 1

    def _from_editor(self) -> None:
        try:
            while piece := os.read(0, PIECE):
                self.watcher.feed(piece)
                if self.watcher.saw_exit:
                    self._editor_gone.set()  # before the daemon can answer by closing
                self._watch_editor()  # before the answer: by then an editor may have come and gone
                self.daemon.sendall(piece)
                if self.watcher.saw_exit:
                    break
            self._editor_gone.set()
            self.daemon.shutdown(socket.SHUT_WR)
        except OSError:
            self._ended.set()  # the daemon is lost: the other thread may not see it before its buffer is read
            return
        self._ended.wait(LAST_WORDS_S)
        self._ended.set()

    def _from_daemon(self) -> None:
        try:
            while piece := self.daemon.recv(PIECE):
                _write_all(self.wire, piece)
        except OSError:
            pass
        self._ended.set()

    def _watch_editor(self) -> None:
        """Once the editor has said its process id: end when that process ends, even if somebody else holds the pipe (d13)."""
        pid, self.watcher.editor_pid = self.watcher.editor_pid, None
        if pid is None:
            return
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return  # a process id of another machine or container says nothing here
        except (AttributeError, OSError):
            process = None
        threading.Thread(target=self._wait_for_end, args=(pid, process), daemon=True).start()

    def _wait_for_end(self, pid: int, process: int | None) -> None:
        if process is not None:
            select.select([process], [], [])
        else:
            while _alive(pid):
                time.sleep(ALIVE_CHECK_S)
        self._ended.set()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _write_all(fd: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(fd, view) :]


def _refuse_initialize(wire: int, error: StandfastError) -> None:
    """Answer the editor's first request with the reason, so that the person reads a sentence and not "server crashed"."""
    watcher = FrameWatcher()
    while watcher.initialize_id is None:
        ready = select.select([0], [], [], LAST_WORDS_S)[0]
        piece = os.read(0, PIECE) if ready else b""
        if not piece:
            return
        watcher.feed(piece)
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": watcher.initialize_id,
            "error": {"code": INTERNAL_ERROR, "message": error.message, "data": {"reason": error.reason, **error.data}},
        }
    ).encode()
    _write_all(wire, b"Content-Length: %d\r\n\r\n" % len(body) + body)
