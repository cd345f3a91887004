"""Messages that wait for the run before them: edited, moved, removed, let go on (R13, issue F.8). Each change is one fact, durable."""

from __future__ import annotations

from standfast.errors import NotFound
from standfast.events.types import (
    MessageDequeued,
    MessageEdited,
    RunFinished,
    SessionUpdated,
    TextContent,
    UserMessage,
)
from standfast.projections.rows import MessageRow, SessionRow
from standfast.session.binding import require
from standfast.session.live import Live
from standfast.session.parts import Parts
from standfast.session.starting import Starting, Tagged


async def change(
    parts: Parts,
    live: Live,
    session: SessionRow,
    message_id: str,
    *,
    text: str | None = None,
    position: int | None = None,
    remove: bool = False,
) -> tuple[list[MessageRow], bool]:
    """Edit, move or remove a message that waits. Returns the queue and whether it is held.

    Raises MessageNotFound for one that does not wait (any more).
    """
    async with live.turn:
        waiting = await parts.store.messages(session_id=session.session_id, state="queued")
        message = next((one for one in waiting if one.message_id == message_id), None)
        if message is None:
            raise NotFound(
                "MessageNotFound",
                f"No message {message_id} waits in the queue. Nothing was changed; it may have been sent.",
            )
        fact = (
            MessageDequeued(message_id=message_id, reason="removed")
            if remove
            else MessageEdited(message_id=message_id, text=text, position=position)
        )
        await parts.journal.emit(session.session_id, fact, run_id=message.run_id)
        waiting = await parts.store.messages(session_id=session.session_id, state="queued")
        row = await parts.store.session(session.session_id)
        return waiting, bool(waiting) and row is not None and row.queue_held


async def release(parts: Parts, starting: Starting, live: Live, session: SessionRow) -> None:
    """The person lets a held queue go on."""
    async with live.turn:
        waiting = await parts.store.messages(session_id=session.session_id, state="queued")
        freed = SessionUpdated(queue_held=False)
        if live.run_id is not None or not waiting:
            await parts.journal.emit(session.session_id, freed)
            return
        await require(session, starting.folders.open)
        first = waiting[0]
        await starting.begin(
            live, session, first.run_id, starting.started("queue"), sent(first), before=[(None, freed)]
        )


async def anew(parts: Parts, session_id: str) -> list[Tagged]:
    """What goes before a message that is queued: where nothing waited, the hold of a bad end long ago is over (R13.1).

    Else a run that failed once would keep whatever is queued later from ever running by itself.
    """
    session = await parts.store.session(session_id)
    if session is None or not session.queue_held or await parts.store.messages(session_id=session_id, state="queued"):
        return []
    return [(None, SessionUpdated(queue_held=False))]


async def following(parts: Parts, session_id: str, end: RunFinished) -> MessageRow | None:
    """The message whose turn it is after the end of a run; None after a bad end, or where the queue is held."""
    session = await parts.store.session(session_id)
    if end.status != "succeeded" or session is None or session.queue_held:
        return None
    waiting = await parts.store.messages(session_id=session_id, state="queued")
    return waiting[0] if waiting else None


async def take_out(parts: Parts, session_id: str, run_id: str) -> None:
    """Remove the message of a queued run."""
    for message in await parts.store.messages(session_id=session_id, state="queued"):
        if message.run_id == run_id:
            removed = MessageDequeued(message_id=message.message_id, reason="removed")
            await parts.journal.emit(session_id, removed, run_id=run_id)


def sent(message: MessageRow) -> list[Tagged]:
    """A queued message becomes one that was sent. Pure."""
    return [
        (message.run_id, MessageDequeued(message_id=message.message_id, reason="started")),
        (
            message.run_id,
            UserMessage(
                message_id=message.message_id,
                client_message_id=message.client_message_id,
                content=[TextContent(text=message.text)],
            ),
        ),
    ]
