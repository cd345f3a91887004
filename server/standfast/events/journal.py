"""The one way in (R4): `emit` = append, then publish. Nobody else appends, and nobody sees what is not stored.

What was stored with NORMAL only could be taken back by a power cut, so it goes at once to those who show streamed text
(`subscribe_deltas`) and as an event (`subscribe`) only after the next FULL commit of the store: a client never holds a `seq`
that does not last (design.md "Durability").

Order: entries are handed to the store in the order of the calls of `emit`, the store answers in that order, and what follows
an answer runs on the loop in the order of the answers. So every subscriber sees each session's `seq` rising by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from standfast.events.entry import Entry
from standfast.events.types import Fact, Recorded
from standfast.failpoints import hit

Subscriber = Callable[[list[Recorded]], None]
"""Called on the loop with events of one session, in order. Must not block."""

Facts = Fact | Sequence[Fact | tuple[str | None, Fact]]
"""One fact, or several in order, each with a run of its own if need be."""


class Log(Protocol):
    """The part of a store that the journal needs (`store.base.Store`)."""

    async def append(self, entry: Entry) -> list[Recorded]: ...

    async def settle(self) -> None: ...


class Journal:
    """Appends to one store and publishes to any number of subscribers. One per store."""

    def __init__(self, store: Log) -> None:
        self._store = store
        self.emitted = 0
        """Events stored by this journal."""
        self._subscribers: list[Subscriber] = []
        self._delta_subscribers: list[Subscriber] = []
        self._held: dict[str, list[Recorded]] = {}
        """Stored with NORMAL only, by session: waiting for a FULL commit."""
        self._emitting: set[asyncio.Task[list[Recorded]]] = set()

    async def emit(
        self,
        session_id: str,
        facts: Facts,
        *,
        run_id: str | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> list[Recorded]:
        """Append facts of one session, all or nothing, and publish them; returns them as recorded.

        `run_id` is for the facts that bring none of their own. Cancelling the caller cancels neither the append nor the
        publishing. Raises StoreError, or NotFound (`SessionNotFound`): then nothing was stored and nothing is published.
        """
        pairs = [facts] if isinstance(facts, Fact) else facts
        entry = Entry(
            session_id,
            [pair if isinstance(pair, tuple) else (run_id, pair) for pair in pairs],
            blobs or {},
        )
        task = asyncio.create_task(self._emit(entry), name=f"emit {session_id}")
        self._emitting.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Make everything emitted so far durable and publish it, e.g. before a client is told a `seq` (attach)."""
        await self._store.settle()
        self._release()

    async def arrived(self) -> None:
        """Return once all that was handed to `emit` is stored, or was refused: also what a cancelled caller left under way."""
        if self._emitting:
            await asyncio.wait(set(self._emitting))

    def announce(self, events: list[Recorded]) -> None:
        """Tell subscribers of events that came into the store otherwise than by `emit`: the last of a copy or of an import."""
        self._publish(self._subscribers, events)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call back with events once they are stored and last; returns what ends that."""
        return _join(self._subscribers, callback)

    def subscribe_deltas(self, callback: Subscriber) -> Callable[[], None]:
        """Call back at once with streamed text and output, which comes to `subscribe` later; returns what ends that."""
        return _join(self._delta_subscribers, callback)

    async def close(self) -> None:
        """Wait for what is being emitted, then publish what is held."""
        while self._emitting:
            await asyncio.wait(set(self._emitting))
        await self.settle()

    async def _emit(self, entry: Entry) -> list[Recorded]:
        events = await self._store.append(entry)
        self.emitted += len(events)
        if any(event.fact.durable for event in events):
            self._release()
            self._publish(self._subscribers, events)
        else:
            self._held.setdefault(entry.session_id, []).extend(events)
            self._publish(self._delta_subscribers, events)
        hit("after_publish")
        return events

    def _release(self) -> None:
        """A FULL commit made everything before it last, in all sessions."""
        held, self._held = self._held, {}
        for events in held.values():
            self._publish(self._subscribers, events)

    def _publish(self, subscribers: Sequence[Subscriber], events: list[Recorded]) -> None:
        if not events:
            return
        for subscriber in list(subscribers):
            try:
                subscriber(list(events))
            except Exception as error:  # noqa: BLE001 - one bad subscriber must not take a stored fact from the others
                context = {"message": "a subscriber of the journal failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    def _done(self, task: asyncio.Task[list[Recorded]]) -> None:
        self._emitting.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not come for it


def _join(subscribers: list[Subscriber], callback: Subscriber) -> Callable[[], None]:
    subscribers.append(callback)

    def leave() -> None:
        if callback in subscribers:
            subscribers.remove(callback)

    return leave
