"""The model's context of a session: the pure fold of `run/context.py` over what the store has, kept warm between requests."""

from __future__ import annotations

from standfast.events.types import SummaryCreated
from standfast.run.context import TYPES, Context
from standfast.store.base import Store

PAGE = 1000


class ContextReader:
    """Reads only what came since its last look. A new summary starts the fold anew from there (R6.2)."""

    def __init__(self, store: Store, session_id: str, tools: frozenset[str]) -> None:
        self._store = store
        self._session_id = session_id
        self._summary_seq = -1
        self._tools = tools
        self._context = Context(tools=tools)

    async def read(self) -> Context:
        row = await self._store.session(self._session_id)
        summary_seq = row.summary_seq if row is not None else 0
        if summary_seq != self._summary_seq:
            self._context = await self._begin(summary_seq)
            self._summary_seq = summary_seq
        while page := await self._store.events(
            self._session_id, after_seq=self._context.last_seq, limit=PAGE, types=TYPES
        ):
            for event in page:
                self._context.add(event.fact, event.seq)
            if len(page) < PAGE:
                break
        return self._context

    async def _begin(self, summary_seq: int) -> Context:
        if summary_seq == 0:
            return Context(tools=self._tools)
        [event] = await self._store.events(self._session_id, after_seq=summary_seq - 1, limit=1)
        assert isinstance(event.fact, SummaryCreated)
        context = Context(event.fact.text, self._tools)
        context.last_seq = event.fact.through_seq
        return context
