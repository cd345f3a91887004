"""What may go wrong, as one tree. Every error says what happened, what was kept and what to do.

    StandfastError            reason + a sentence for the person; mapped to a wire error by `editor`
    ├── NotFound              SessionNotFound, RunNotFound, CallNotFound, ConflictNotFound       (-32050)
    ├── WorkspaceError        WorkspaceNotFound, WorkspaceMoved, WorkspaceReplaced
    ├── Busy                  SessionBusy, Overloaded
    ├── NotAvailable          ActionNotAvailable, RunKeepsCrashing
    ├── StoreError            StoreReadOnly, StorageFull, StoreDamaged, StoreBusy
    └── ModelError            (in `model.base`: it also says whether to try again)

What can happen in ordinary work (a patch that does not fit, a denied call) is a value, not an exception.
"""

from __future__ import annotations

from typing import Any


class StandfastError(Exception):
    """An error that a person meets.

    `reason` is a fixed word for machines (design.md "Errors"); `data` holds further facts for the wire,
    camelCase, e.g. `{"candidateUri": …}`.
    """

    def __init__(self, reason: str, message: str, **data: Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.data = data


class NotFound(StandfastError):
    """An id that names nothing: reason `SessionNotFound`, `RunNotFound`, `CallNotFound` or `ConflictNotFound`."""


class WorkspaceError(StandfastError):
    """The session's folder is gone, moved or another one: `WorkspaceNotFound`, `WorkspaceMoved`, `WorkspaceReplaced`."""


class Busy(StandfastError):
    """Not now: `SessionBusy`, `Overloaded`."""


class NotAvailable(StandfastError):
    """The action does not fit the state: `ActionNotAvailable`, `RunKeepsCrashing`."""


class StoreError(StandfastError):
    """The store refuses: `StoreReadOnly`, `StorageFull`, `StoreDamaged`, `StoreBusy`. Nothing was half written."""
