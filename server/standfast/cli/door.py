"""How the command line reaches the daemon. `daemon.spawn.Spawner` is one; `__main__` hands it in."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Protocol

from standfast.places import Places


class Door(Protocol):
    @property
    def places(self) -> Places: ...

    def elsewhere(self, environ: Mapping[str, str]) -> Door:
        """The door to the daemon of another environment."""
        ...

    def connect(self) -> socket.socket | None:
        """A connection to the running daemon, None if there is none. Starts nothing."""
        ...

    def reach(self) -> socket.socket:
        """A connection to the daemon, which is started if there is none. Raises StandfastError."""
        ...

    def stop(self) -> bool:
        """End the running daemon in order and wait. False: there was none. Raises StandfastError."""
        ...

    def drain(self) -> bool:
        """Let it end once no run goes on, and wait for that. False: there was none."""
        ...
