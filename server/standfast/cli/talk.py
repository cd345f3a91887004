"""A connection to the daemon that has shaken hands, for the commands. A daemon that does not answer is said to be silent (F19)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator

from standfast.cli.client import Client
from standfast.cli.door import Door
from standfast.errors import StandfastError

ANSWER_S = 10.0
"""How long the daemon may take to shake hands."""


@contextlib.asynccontextmanager
async def talk(door: Door) -> AsyncGenerator[Client]:
    """Starts the daemon where there is none. Raises StandfastError."""
    async with talk_over(await asyncio.to_thread(door.reach)) as client:
        yield client


@contextlib.asynccontextmanager
async def talk_over(sock: socket.socket, *, any_version: bool = False) -> AsyncGenerator[Client]:
    """Shake hands over a connection. `any_version`: for what every daemon can be asked. Raises StandfastError (`DaemonSilent`)."""
    async with Client.over_socket(sock) as client:
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.initialize(client_id="cli", plain=any_version)
        except TimeoutError:
            raise StandfastError(
                "DaemonSilent",
                f"The daemon is there, but has not answered for {ANSWER_S:g} s: it is stopped or very busy. "
                "Your sessions are safe, and no second daemon was started. Try again, or look at its log.",
            ) from None
        yield client
