"""What is shown of a session's past: pages of events, the transcript, whole texts for a difference view (R3.2, R5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from standfast.errors import WorkspaceError
from standfast.events.types import Conflict, Recorded
from standfast.projections.rows import CallRow, ConflictRow
from standfast.projections.transcript import transcript
from standfast.session.parts import Parts
from standfast.session.tooling import tool_context
from standfast.session.views import ConflictView, FileDiff, WireEvent
from standfast.store.base import Store
from standfast.tools.reconsider import Reconsidered

LIMIT_DEFAULT = 200
LIMIT_MAX = 1000
TRANSCRIPT_EVENTS_MAX = 20_000
"""A transcript document tells the newest so many events; the rest is read by page."""


def bounded(limit: int | None) -> int:
    """A page's size (design.md "Paging"). Pure."""
    return LIMIT_DEFAULT if limit is None else max(1, min(limit, LIMIT_MAX))


async def page(
    store: Store, session_id: str, *, after_seq: int | None, before_seq: int | None, limit: int | None
) -> tuple[list[WireEvent], bool]:
    """One page, ascending, and whether there are more in the direction that was asked for."""
    size = bounded(limit)
    events = await store.wire_events(session_id, after_seq=after_seq, before_seq=before_seq, limit=size + 1)
    if len(events) <= size:
        return events, False
    return (events[:size] if after_seq is not None else events[1:]), True


async def session_transcript(store: Store, session_id: str) -> str:
    """The session as text for people."""
    events: list[Recorded] = []
    before: int | None = None
    while len(events) < TRANSCRIPT_EVENTS_MAX:
        part = await store.events(session_id, before_seq=before, limit=LIMIT_MAX)
        events[:0] = part
        if len(part) < LIMIT_MAX:
            break
        before = part[0].seq
    return transcript(events)


# -- differences ------------------------------------------------------------------------------------------------------


async def call_diffs(parts: Parts, calls: Sequence[CallRow]) -> list[FileDiff]:
    """Before and after of each file that calls changed or meant to change: the first before, the last after."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for call in calls:
        for change in changes_of(call):
            uri = change["uri"]
            first = found.get(uri, (change.get("beforeBlob"), None))[0]
            found[uri] = (first, change.get("afterBlob"))
    return [
        FileDiff(uri, await text(parts.store, before), await text(parts.store, after))
        for uri, (before, after) in found.items()
    ]


def conflict_diff(conflict: ConflictView) -> FileDiff:
    """What the model saw, what is there now, and what it wanted. Pure."""
    return FileDiff(conflict.row.uri, conflict.base, conflict.current, conflict.proposed)


def changes_of(call: CallRow) -> Sequence[Mapping[str, Any]]:
    """The files of a call: of its result, else of its intents, else of the question for permission. Pure.

    A call that was found not to have happened changed none: there, too, it is what it meant to do that a person asks for.
    """
    if call.intents and (call.state != "done" or (call.verdict is not None and not call.files)):
        return [intent for intent in call.intents if intent.get("kind") in ("file", "buffer")]
    return call.files


async def conflict_view(parts: Parts, row: ConflictRow) -> ConflictView:
    """A conflict: base and proposed as they were, the rest evaluated anew against the file as it is now (issue B.5)."""
    detail = row.detail
    found = await text(parts.store, detail.get("currentBlob"))
    view = ConflictView(
        row=row,
        base=await text(parts.store, detail.get("baseBlob")),
        current=found,
        proposed=await text(parts.store, detail.get("proposedBlob")),
        merged=await text(parts.store, detail.get("mergedBlob")),
        hunks=list(detail.get("hunks", [])),
        version=detail.get("currentVersion"),
        found=found,
    )
    now = await _reconsidered(parts, row)
    if now is None:
        return view
    return replace(
        view,
        current=_shown(now.current),
        merged=_shown(now.merged),
        hunks=[hunk.model_dump(by_alias=True, exclude_none=True) for hunk in now.hunks],
        version=now.version,
        missing=now.is_missing,
    )


async def _reconsidered(parts: Parts, row: ConflictRow) -> Reconsidered | None:
    """None: settled, or its folder is gone, so that only the record tells."""
    session = await parts.store.session(row.session_id) if row.state == "open" else None
    if session is None or parts.reconsider is None:
        return None
    try:
        ctx = await tool_context(parts, session, row.call_id, "")
        return await parts.reconsider(Conflict.model_validate(row.detail), ctx)
    except WorkspaceError:
        return None


async def text(store: Store, blob_id: str | None) -> str | None:
    """A blob as text for people; what is not UTF-8 is shown as such."""
    return _shown(await store.blob(blob_id) if blob_id else None)


def _shown(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", errors="replace")
