"""Checkpoints that the person asks for (R6.2): made beside everything else, and given up as soon as there is something to do (a42)."""

from __future__ import annotations

import asyncio

from standfast.errors import NotAvailable, StandfastError
from standfast.projections.rows import SessionRow
from standfast.run.checkpoint import summarise
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.surroundings import Folders, surroundings

GIVEN_UP = (
    "The session was gone on with, so the checkpoint was given up. Nothing was lost; the one before stays in force. "
    "Ask for it again when nothing runs."
)


def begin(parts: Parts, folders: Folders, live: Live, session: SessionRow) -> asyncio.Future[None]:
    """Start making a checkpoint, under `live.turn`; the result is set when it is stored.

    It is an error (`ModelError`, `ActionNotAvailable` where it was given up) otherwise: then the one before is in force.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    live.compacting = parts.spawn(_make(parts, folders, live, session, done), f"compact {session.session_id}")
    return done


async def give_up(live: Live) -> None:
    """Stop a checkpoint that is being made; under `live.turn`."""
    task = live.compacting
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


async def _make(parts: Parts, folders: Folders, live: Live, session: SessionRow, done: asyncio.Future[None]) -> None:
    try:
        runtime = surroundings(parts, folders, live, session, session.last_run_id)
        await summarise(runtime, await runtime.context())
    except asyncio.CancelledError:
        _tell(done, NotAvailable("ActionNotAvailable", GIVEN_UP))
    except StandfastError as error:
        _tell(done, error)
    else:
        _tell(done, None)
    finally:
        live.compacting = None


def _tell(done: asyncio.Future[None], error: StandfastError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
