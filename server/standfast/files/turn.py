"""One transaction a workspace at a time, across all sessions of the process; off the loop, and whole when cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

from standfast.files.paths import Root
from standfast.files.refusal import Refusal
from standfast.files.transaction import Step, execute

T = TypeVar("T")
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[int, int], asyncio.Lock]] = WeakKeyDictionary()


def turn_of(root: Root) -> asyncio.Lock:
    """The lock of a workspace: by device and inode, so that two paths to one folder share it."""
    return _turns.setdefault(asyncio.get_running_loop(), {}).setdefault(root.identity, asyncio.Lock())


async def off_loop(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run blocking work in a thread. Cancelled, it is asked to stop, waited for, and only then the cancellation goes on."""
    stop = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, stop.is_set)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError as error:
            cancelled = error
            stop.set()
    if cancelled is not None:
        raise cancelled
    return running.result()


@asynccontextmanager
async def workspace_turn(folder: Path) -> AsyncGenerator[Root]:
    """The open workspace, with nobody else of this process changing it. Raises WorkspaceError (`WorkspaceNotFound`)."""
    root = await off_loop(lambda _: Root(folder))
    try:
        async with turn_of(root):
            yield root
    finally:
        root.close()


async def put_in_place(folder: Path, steps: Sequence[Step]) -> Refusal | None:
    """`transaction.execute` in the workspace's turn."""
    if not steps:
        return None
    async with workspace_turn(folder) as root:
        return await off_loop(lambda stop: execute(root, steps, stop))
