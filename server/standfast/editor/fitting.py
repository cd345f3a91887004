"""Which actions fit a call or a conflict as it stands: one place, for code actions and for the wire. Pure.

The tools have the last word (`ActionNotAvailable`); what surely does not fit is not even offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast.projections.recovery_view import left_a_lock
from standfast.projections.rows import CallRow
from standfast.protocol.objects import ConflictAction, RecoveryAction
from standfast.session.views import ConflictView

_FITS: dict[str, tuple[RecoveryAction, ...]] = {
    "applied": ("undo", "keep", "dismiss"),
    "not_applied": ("complete", "dismiss"),
    "partial": ("complete", "undo", "keep"),
    "diverged": ("keep", "verify"),
    "running": ("stop", "verify", "dismiss"),
    "finished": ("dismiss",),
    "unknown": ("verify", "keep", "dismiss"),
}
_FILES_ONLY = frozenset({"complete", "undo"})


def call_actions(call: CallRow) -> Sequence[RecoveryAction]:
    """The actions of recovery/resolve that fit, the most likely first."""
    kinds = {intent.get("kind") for intent in call.intents}
    fitting: list[RecoveryAction] = [
        action for action in _FITS.get(call.verdict or "unknown", ()) if action not in _FILES_ONLY or kinds == {"file"}
    ]
    if left_a_lock(call):
        fitting.insert(0, "removeLock")
    return fitting


def conflict_actions(view: ConflictView) -> list[tuple[ConflictAction, int | None]]:
    """(action, line) pairs for conflict/resolve that fit an open conflict, the most likely first."""
    if view.row.state != "open":
        return []
    merge: list[tuple[ConflictAction, int | None]] = [("merge", None)] if view.merged is not None else []
    places: list[tuple[ConflictAction, int | None]] = [("applyAt", line) for line in candidate_lines(view.hunks)]
    always: list[tuple[ConflictAction, int | None]] = [("retry", None), ("keep", None), ("dismiss", None)]
    return merge + places + always


def candidate_lines(hunks: Sequence[dict[str, Any]]) -> list[int]:
    """Where the hunk in conflict could go, from 1, each line once; only for a single hunk is a line an answer.

    A line that differs in its indentation is near, but no candidate: leading white space is never ignored (POLICY 3).
    """
    stuck = [hunk for hunk in hunks if hunk.get("state") == "conflict"]
    if len(stuck) != 1 or stuck[0].get("reason") == "indentation_mismatch":
        return []
    return sorted(dict.fromkeys(stuck[0].get("candidateLines") or ()))
