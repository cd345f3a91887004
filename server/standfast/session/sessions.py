"""The facade that fronts use: sessions, runs, the queue, recovery, conflicts (R1, R2, R5, R7, R13). START HERE for what a client can ask.

Each method reads rows or hands over to the module that owns the matter; nothing here knows an editor, a wire type or a tool.
Errors are `StandfastError`s with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from standfast.events.types import TextContent
from standfast.projections.rows import CallRow, ConflictRow, MessageRow, RunRow
from standfast.session.views import (
    Attached,
    ConflictView,
    FileDiff,
    Recovery,
    RunPage,
    SessionView,
    StartedRun,
    Undone,
)


class Sessions:
    """All sessions of one store. One instance a daemon, built by `daemon/`."""

    # -- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Mark runs without an end as interrupted and their calls as uncertain, by index (R5.1, R7.1). Checks nothing outside."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Cancel live runs (as `interrupted`, not `cancelled`: the person did not ask) and wait for them."""
        raise NotImplementedError

    def busy(self) -> bool:
        """A run, an open permission of a live run or a supervised command keeps the daemon from its idle exit."""
        raise NotImplementedError

    # -- sessions -------------------------------------------------------------------------------------------------

    async def list(
        self, *, workspace_uri: str | None = None, status: str | None = None, query: str | None = None,
        cursor: str | None = None, limit: int = 200,
    ) -> tuple[list[SessionView], str | None]: ...

    async def create(self, workspace_uri: str, *, title: str = "", mode: str = "ask", model: str = "") -> SessionView:
        """Raises WorkspaceNotFound where the folder is not there."""
        raise NotImplementedError

    async def get(self, session_id: str) -> SessionView:
        """Raises SessionNotFound."""
        raise NotImplementedError

    async def attach(
        self, session_id: str, *, after_seq: int | None = None, after_hash: str | None = None, limit: int = 200
    ) -> Attached:
        """Verifies what is uncertain, makes everything so far durable, and answers (design.md "Paging", "Verdicts").

        The caller must have subscribed to the journal before, and drop live events up to `head_seq`.
        """
        raise NotImplementedError

    async def events(
        self, session_id: str, *, after_seq: int | None = None, before_seq: int | None = None, limit: int = 200
    ) -> tuple[list, bool]:
        """(events ascending, has_more)"""
        raise NotImplementedError

    async def update(
        self, session_id: str, *, title: str | None = None, status: str | None = None, mode: str | None = None, model: str | None = None
    ) -> SessionView: ...

    async def rebind(self, session_id: str, workspace_uri: str) -> SessionView: ...
    async def fork(self, session_id: str, at_seq: int | None = None) -> SessionView: ...
    async def delete(self, session_id: str) -> None: ...
    async def compact(self, session_id: str) -> SessionView: ...
    async def export(self, session_id: str, directory_uri: str) -> None: ...
    async def import_(self, uri: str, *, force: bool = False) -> SessionView: ...

    # -- runs and the queue ---------------------------------------------------------------------------------------

    async def run_start(self, session_id: str, content: Sequence[TextContent], client_message_id: str) -> StartedRun: ...
    async def run_steer(self, run_id: str, content: Sequence[TextContent], client_message_id: str) -> None: ...
    async def run_cancel(self, run_id: str) -> RunRow: ...
    async def run_resume(self, run_id: str, *, confirm: bool = False) -> StartedRun: ...
    async def run_undo(self, run_id: str) -> Undone: ...
    async def runs(
        self, *, workspace_uri: str | None = None, session_id: str | None = None, status: str | None = None,
        cursor: str | None = None, limit: int = 200,
    ) -> RunPage: ...

    async def queue(self, session_id: str) -> tuple[list[MessageRow], bool]:
        """(queued messages by position, held)"""
        raise NotImplementedError

    async def queue_edit(self, session_id: str, message_id: str, text: str) -> tuple[list[MessageRow], bool]: ...
    async def queue_move(self, session_id: str, message_id: str, position: int) -> tuple[list[MessageRow], bool]: ...
    async def queue_remove(self, session_id: str, message_id: str) -> tuple[list[MessageRow], bool]: ...
    async def queue_resume(self, session_id: str) -> tuple[list[MessageRow], bool]: ...

    # -- recovery, permissions, conflicts -------------------------------------------------------------------------

    async def open_workspaces(self, workspace_uris: Sequence[str]) -> list[str]:
        """A client opened these folders: verify their sessions' uncertain calls. Returns ids of sessions with open matters."""
        raise NotImplementedError

    async def attention_sources(self, workspace_uris: Sequence[str]) -> list[str]:
        """Ids of the sessions bound to these folders that have something a person must look at."""
        raise NotImplementedError

    async def attention(self, session_id: str) -> list:
        """`projections.attention.AttentionItem`s of one session, from its rows."""
        raise NotImplementedError

    async def recovery(self, session_id: str) -> Recovery: ...
    async def recovery_resolve(self, call_id: str, action: str) -> CallRow: ...

    async def open_permissions(self, session_id: str) -> list[CallRow]: ...
    async def answer(self, call_id: str, decision: str, digest: str, by: str) -> bool:
        """An answer to a permission. False: it came too late, twice, or for another content; nothing changed."""
        raise NotImplementedError

    async def conflict(self, conflict_id: str) -> ConflictView: ...
    async def conflict_resolve(self, conflict_id: str, action: str, line: int | None = None) -> ConflictRow: ...

    async def diff(
        self, *, call_id: str | None = None, conflict_id: str | None = None, run_id: str | None = None, uri: str | None = None
    ) -> list[FileDiff]: ...

    # -- the rest -------------------------------------------------------------------------------------------------

    async def transcript(self, session_id: str) -> str: ...
    async def messages(self, *, workspace_uri: str | None = None, query: str | None = None, limit: int = 200) -> list[MessageRow]: ...
    async def workspace_files(self, workspace_uri: str, query: str, limit: int = 50) -> list[str]:
        """Relative paths for @-completion, gitignore respected."""
        raise NotImplementedError

    async def workspace_trust(self, workspace_uri: str, *, trusted: bool) -> None: ...
    def declare_untrusted(self, workspace_uris: Sequence[str], *, untrusted: bool) -> None:
        """The editor itself says that the folder is untrusted: `plan` and `ask` only (design.md "Small print")."""

    async def goal_set(self, session_id: str, objective: str, token_budget: int | None = None) -> dict: ...
    async def goal_update(self, session_id: str, *, status: str | None = None, token_budget: int | None = None, objective: str | None = None) -> dict: ...
    async def goal_get(self, session_id: str) -> dict | None: ...
    async def goal_clear(self, session_id: str) -> None: ...
