"""What a store can do, whatever lies beneath (R3, R14). SQLite implements it; the contract tests hold any other to it.

Writing has one door, `append`: events, their rows and their blobs in one transaction. All reads are by index or by page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from standfast.clock import Ids
from standfast.events.entry import Entry
from standfast.events.types import Recorded
from standfast.projections.rows import (
    CallRow,
    ConflictRow,
    MessageRow,
    RunRow,
    SeenRow,
    SessionRow,
    Statistics,
)
from standfast.store.past import Damage, Intake

__all__ = ["Damage", "Entry", "Store"]


class Store(Protocol):
    """One store of sessions. Ordering by (created or updated) time is newest first; cursors are opaque."""

    async def append(self, entry: Entry) -> list[Recorded]:
        """Store and return the events with seq, time and hash; returns only once they are as durable as the
        strongest fact asks. Shielded: cancelling the caller cancels no write.

        Raises StoreError (`StorageFull`, `StoreReadOnly`, `StoreBusy`, `StoreDamaged`): then nothing was stored.
        """
        ...

    async def settle(self) -> None:
        """Make everything committed so far durable (a FULL commit), e.g. before a client is told a seq."""
        ...

    async def session(self, session_id: str) -> SessionRow | None: ...

    async def sessions(
        self,
        *,
        workspace_uris: Sequence[str] | None = None,
        status: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 200,
    ) -> tuple[list[SessionRow], str | None]:
        """By `updated_at_ms`, newest first; without `status`, archived ones are left out."""
        ...

    async def sessions_with_open_matters(self, workspace_uris: Sequence[str]) -> list[str]:
        """Ids of the sessions bound to these folders that have an interrupted last run, an undismissed uncertain call, an open
        permission or an open conflict. By index: nothing else of them is read."""
        ...

    async def workspaces(self) -> list[tuple[str, str]]:
        """(workspace_uri, identity JSON) of all sessions, distinct: to recognise moved folders."""
        ...

    async def events(
        self,
        session_id: str,
        *,
        after_seq: int | None = None,
        before_seq: int | None = None,
        limit: int = 200,
        types: Sequence[str] | None = None,
    ) -> list[Recorded]:
        """Ascending. With `after_seq` the first `limit` after it; with `before_seq`, or neither, the last `limit` before it."""
        ...

    async def wire_events(
        self, session_id: str, *, after_seq: int | None = None, before_seq: int | None = None, limit: int = 200
    ) -> list[tuple[int, str]]:
        """(seq, event as clients see it) of the page that `events` would give, spliced from the stored text and not decoded:
        for `attach` and `session/events`, whose cost is this (performance.md "Replay")."""
        ...

    async def event_hash(self, session_id: str, seq: int) -> str | None:
        """The stored hash at seq, None if there is no such event."""
        ...

    async def damage(self, session_id: str) -> Damage | None:
        """Check the whole chain of one session (slow: doctor and export)."""
        ...

    async def noted_damage(self, session_id: str) -> Damage | None:
        """What was found wrong with a history when it was taken in; quick."""
        ...

    async def run(self, run_id: str) -> RunRow | None: ...

    async def runs(
        self,
        *,
        session_id: str | None = None,
        workspace_uris: Sequence[str] | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 200,
    ) -> tuple[list[RunRow], str | None]: ...

    async def run_statistics(
        self,
        *,
        session_id: str | None = None,
        workspace_uris: Sequence[str] | None = None,
        status: str | None = None,
    ) -> Statistics: ...

    async def resuming_run(self, run_id: str) -> RunRow | None:
        """The run that resumes this one (`resumes_run_id`), by index; the newest, None if there is none."""
        ...

    async def unfinished_runs(self) -> list[RunRow]:
        """Status `running`, in all sessions, by index (R7.1)."""
        ...

    async def call(self, call_id: str) -> CallRow | None: ...

    async def calls(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        pending: bool = False,
        recovery: bool = False,
        decided: bool = False,
    ) -> list[CallRow]:
        """By seq. `pending`: without a result (R9.3). `recovery`: uncertain once and not dismissed.
        `decided`: denied by the person, or settled by an action of theirs."""
        ...

    async def messages(
        self,
        *,
        session_id: str | None = None,
        state: str | None = None,
        query: str | None = None,
        workspace_uris: Sequence[str] | None = None,
        limit: int = 200,
    ) -> list[MessageRow]:
        """Queued ones by position; others newest first."""
        ...

    async def message(self, session_id: str, client_message_id: str) -> MessageRow | None: ...

    async def conflict(self, conflict_id: str) -> ConflictRow | None: ...

    async def conflicts(self, *, session_id: str | None = None, open_only: bool = True) -> list[ConflictRow]: ...

    async def seen(self, session_id: str) -> dict[str, SeenRow]: ...

    async def allowances(self, session_id: str) -> set[str]:
        """The allow_keys of `allowSession` answers."""
        ...

    async def blob(self, blob_id: str) -> bytes | None: ...

    async def put_blob(self, data: bytes) -> str:
        """Store bytes by content; returns the sha256 hex."""
        ...

    async def trusted(self, workspace_uri: str) -> str | None:
        """The identity that the folder was trusted with; None: it was not, or is not any more."""
        ...

    async def set_trusted(self, workspace_uri: str, identity: str, *, trusted: bool) -> None: ...

    async def fork(self, session_id: str, at_seq: int | None, target: str, ids: Ids) -> int:
        """Make `target` a copy of a session up to an event (its newest, if None), under new ids and with nothing open.

        Returns the number of its events. Raises NotFound, NotAvailable (no such event), StoreError.
        """
        ...

    async def take_in(self, intake: Intake) -> int:
        """Store a history from elsewhere as a new session, whole or not at all; returns the number of its events."""
        ...

    async def copy_of(self, session_id: str, head_hash: str) -> str | None:
        """The session that is an import's copy of this history (`origin`), if there is one."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove a session for good, with the blobs that nobody else uses. Raises NotFound, StoreError."""
        ...

    async def cool(self, session_id: str) -> None:
        """Pack an archived session's events, a page a transaction; they are read as before."""
        ...

    async def close(self) -> None: ...
