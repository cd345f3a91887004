"""This daemon's hold on one living command: notice its end, speak to its supervisor, let it go."""

from __future__ import annotations

import asyncio
import contextlib
import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from standfast.process.identity import Identity, alive, identify

INPUT_CHUNK = 2048
"""Bytes of input in one line: with base64 still below PIPE_BUF, so that lines never mix."""
POLL_S = 0.1
"""How often a process is looked at where the system has no pidfds."""


class Supervised:
    """A command whose supervisor lives, and this daemon's hold on it. Made by `Commands` only."""

    def __init__(self, directory: Path, pid: int, control: int, *, child: bool, ended: Callable[[Path], None]) -> None:
        self.directory = directory
        self.pid = pid
        """The supervisor's."""
        self._control = control
        self._child = child
        self._report = ended
        self._gone = asyncio.Event()
        self._watch()

    async def ended(self) -> None:
        """Wait until the supervisor is gone: then its exit record stands, unless it was killed."""
        await self._gone.wait()

    @property
    def is_ended(self) -> bool:
        return self._gone.is_set()

    def tell(self, line: bytes) -> bool:
        """Say a word to the supervisor. False: it is gone, or takes no more now."""
        try:
            os.write(self._control, line + b"\n")
        except OSError:
            return False
        return True

    def write(self, data: bytes) -> int:
        """Give the command input; returns how many bytes were taken."""
        taken = 0
        while taken < len(data):
            part = data[taken : taken + INPUT_CHUNK]
            if not self.tell(b"input " + b64encode(part)):
                break
            taken += len(part)
        return taken

    def let_go(self) -> None:
        """Hold it no more: without another daemon its grace time begins."""
        self._unwatch()
        self._close()

    def give_up(self) -> None:
        """It is known to be gone."""
        if not self._gone.is_set():
            self._on_end()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        try:
            self._handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not Linux, gone already, or no descriptor is left
            self._handle = -1
            self._timer = loop.call_soon(self._poll, None)
            return
        loop.add_reader(self._handle, self._on_end)

    def _poll(self, identity: Identity | None) -> None:
        """Without pidfds: look now and then. What cannot be looked at has not ended because of that (F20)."""
        lives = True
        with contextlib.suppress(OSError):
            identity = identity or identify(self.pid)
            lives = identity is not None and alive(identity)
        if lives:
            self._timer = asyncio.get_running_loop().call_later(POLL_S, self._poll, identity)
        else:
            self._on_end()

    def _on_end(self) -> None:
        self._unwatch()
        if self._child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
        self._close()
        self._gone.set()
        self._report(self.directory)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _close(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
