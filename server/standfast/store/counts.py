"""What a store has done since it was opened, for whoever looks after the daemon (issue D.5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Written on the writer's thread, read on the loop: single numbers, so that no lock is needed."""

    appends: int = 0
    """Entries, each of one or several events."""
    commits: int = 0
    durable_commits: int = 0
    durable_ms: float = 0.0
    """Spent in COMMITs that sync the disk, in all."""
    durable_max_ms: float = 0.0
    waiting: int = 0
    """Jobs that no commit has taken yet."""

    def committed(self, appends: int, took_ms: float, *, durable: bool) -> None:
        """One commit is done."""
        self.appends += appends
        self.commits += 1
        if durable:
            self.durable_commits += 1
            self.durable_ms += took_ms
            self.durable_max_ms = max(self.durable_max_ms, took_ms)
