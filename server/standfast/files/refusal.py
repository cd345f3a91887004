"""Why a change is not carried out: one fixed word, one sentence, and where (cases/POLICY.md "Reasons"). Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from standfast.events.types import HunkState

CONFLICTS = frozenset(
    {
        "ambiguous",
        "context_not_found",
        "anchor_not_found",
        "eof_mismatch",
        "indentation_mismatch",
        "already_applied",
        "exists",
        "destination_exists",
        "not_found",
        "not_a_file",
        "not_a_directory",
        "dirty_buffer",
        "file_changed",
    }
)
"""Workspace and wish disagree: a person can settle it. Every other reason is an error (malformed or not allowed)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that was refused; nothing was touched.

    `hunk_index` counts from 0 inside the file's section, lines count from 1. `path` is as it was asked for.
    """

    reason: str
    message: str
    path: str | None = None
    hunk_index: int | None = None
    hunks: tuple[HunkState, ...] = ()

    @property
    def is_conflict(self) -> bool:
        """Whether workspace and wish disagree (else the wish itself is wrong or not allowed)."""
        return self.reason in CONFLICTS

    def at(self, path: str) -> Refusal:
        """The same refusal, said of `path`."""
        return replace(self, path=path)


class Refused(Exception):
    """A refusal on its way up from the file system's rim; it is turned back into a value before it leaves `files/`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refuse(reason: str, message: str, path: str | None = None) -> Refused:
    """Short for raising: `raise refuse("read_only", "…", path)`."""
    return Refused(Refusal(reason, message, path))
