"""A conflict stays until it is settled, or until a later write of the model to that file supersedes it. Pure.

Source: design.md "Refusals of writes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from standfast.events.types import ConflictResolved, Fact
from standfast.projections.rows import ConflictRow


def superseded(conflicts: Iterable[ConflictRow], uris: Sequence[str]) -> list[Fact]:
    """The facts that end the open conflicts on these files."""
    return [
        ConflictResolved(conflict_id=conflict.conflict_id, action="superseded")
        for conflict in conflicts
        if conflict.uri in uris
    ]
