"""What a front gets when it looks at a session: a page, what is open, whether it is the history it knew (R5, design.md "Paging")."""

from __future__ import annotations

from standfast.projections.rows import SessionRow
from standfast.session import history, permissions
from standfast.session.binding import view
from standfast.session.parts import Parts
from standfast.session.views import Attached, Recovery
from standfast.store.base import Damage

EXAMINED_MAX = 5_000
"""Events whose chain is followed while a client waits: some 20 ms."""


class Attaching:
    """Answers `attach`; remembers what clients found wrong with histories. One a daemon."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._damaged: dict[str, Damage] = {}
        self._examined: dict[str, Damage | None] = {}

    async def attach(
        self, row: SessionRow, *, after_seq: int | None, after_hash: str | None, limit: int | None
    ) -> Attached:
        """The answer, of a row that was read after everything so far was made durable."""
        store = self._parts.store
        damage = await self._compare(row, after_seq, after_hash) or await self._examine(row)
        before = row.head_seq + 1 if after_seq is None else None
        events, has_more = await history.page(
            store, row.session_id, after_seq=after_seq, before_seq=before, limit=limit
        )
        waiting = await store.messages(session_id=row.session_id, state="queued", limit=history.LIMIT_MAX)
        return Attached(
            session=await view(row), events=[(seq, text) for seq, text in events if seq <= row.head_seq],
            head_seq=row.head_seq, has_more=has_more, recovery=await self.recovery(row), queue=waiting,
            queue_held=row.queue_held and bool(waiting),
            permissions=await permissions.open_questions(self._parts, row.session_id), damage=damage,
        )  # fmt: skip

    async def recovery(self, row: SessionRow) -> Recovery | None:
        """What the last interruption left, None if nothing is left of it."""
        calls = await self._parts.store.calls(session_id=row.session_id, recovery=True)
        run = await self._parts.store.run(row.last_run_id) if row.last_run_id else None
        interrupted = run if run is not None and run.status == "interrupted" else None
        return Recovery(interrupted, calls) if interrupted is not None or calls else None

    async def damage(self, session_id: str) -> Damage | None:
        """What is known to be wrong with a history: found by a client's memory, in its own chain, or when it was taken in."""
        found = self._damaged.get(session_id) or self._examined.get(session_id)
        return found or await self._parts.store.noted_damage(session_id)

    def forget(self, session_id: str) -> None:
        """The session was deleted."""
        self._damaged.pop(session_id, None)
        self._examined.pop(session_id, None)

    async def _examine(self, row: SessionRow) -> Damage | None:
        """A history's chain, once in a daemon's life. (A very long one is left to `doctor`, so that nobody waits for it.)"""
        if row.session_id not in self._examined and row.head_seq <= EXAMINED_MAX:
            self._examined[row.session_id] = await self._parts.store.damage(row.session_id)
        return self._examined.get(row.session_id)

    async def _compare(self, row: SessionRow, after_seq: int | None, after_hash: str | None) -> Damage | None:
        """Whether the history that a client remembers is the one that is here (I2, ATK-54).

        Who remembers rightly is told of nothing: another client's memory, right or wrong, is not about its copy.
        """
        if after_seq is None or after_seq == 0:
            return await self.damage(row.session_id)
        found = await self._parts.store.event_hash(row.session_id, after_seq)
        if found is not None and found == after_hash:
            return None
        if found is None:
            self._damaged[row.session_id] = Damage(
                row.head_seq, f"The history ends at {row.head_seq}, but {after_seq} was seen before: it was cut."
            )
        elif after_hash is not None and found != after_hash:
            self._damaged[row.session_id] = Damage(
                after_seq, f"Event {after_seq} is not the one that was seen before: the history was altered."
            )
        return await self.damage(row.session_id)
