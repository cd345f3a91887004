"""Copies of the store, once a day, while nothing waits for them (issue C.4). The way back: `standfast doctor --restore`."""

from __future__ import annotations

import asyncio
import logging

from standfast.errors import StoreError
from standfast.store.sqlite import SqliteStore

FIRST_S = 30.0
"""Not at once: a daemon's first seconds belong to whoever started it."""
LOOK_S = 3600.0

log = logging.getLogger("standfast.daemon")


async def keep_backups(store: SqliteStore, every_s: float) -> None:
    """Until cancelled: make a backup whenever the newest one is older than `every_s`. What fails is tried again, and shown."""
    await asyncio.sleep(min(FIRST_S, every_s))
    while True:
        try:
            made = await store.backup_if_due(round(every_s * 1000))
        except StoreError as error:
            log.warning("no_backup", extra={"reason": error.reason})
        else:
            if made is not None:
                log.info("backup", extra={"path": str(made)})
        await asyncio.sleep(min(LOOK_S, every_s))
