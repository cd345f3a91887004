"""A conflict as it stands to the file as it is now: the file went on, and its places and its merge with it (issue B.5).

Looks, never touches. What is offered to a person is this, and what they choose is held against it once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standfast.events.types import Conflict, HunkState
from standfast.files.entry import Entry
from standfast.files.merge import merge
from standfast.files.patch_parse import parse_patch
from standfast.files.patch_plan import Choice
from standfast.files.refusal import Refusal, Refused
from standfast.tools.apply_patch import try_patch
from standfast.tools.base import ToolContext
from standfast.tools.edit_file import EditFileArgs, look_and_edit
from standfast.tools.edits import with_view


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """`entry` None: nothing can be looked at there. `merged`: what the file would be, offered only where it is another
    content (of a deleted file: what was wanted of it). `hunks`: with their places in the text as it is now."""

    entry: Entry | None
    hunks: tuple[HunkState, ...] = ()
    merged: bytes | None = None

    @property
    def version(self) -> str | None:
        """Of the content as it is now; None: there is no file."""
        return self.entry.version if self.entry is not None and self.entry.kind == "file" else None

    @property
    def is_missing(self) -> bool:
        """The file was deleted."""
        return self.entry is not None and not self.entry.exists

    @property
    def current(self) -> bytes | None:
        """The content as it is now, an unsaved buffer's text before the disk's."""
        return self.entry.data if self.entry is not None and self.entry.kind == "file" else None


async def reconsider(conflict: Conflict, ctx: ToolContext) -> Reconsidered:
    """Evaluate the refused wish anew. Raises WorkspaceError where the folder is gone."""
    entry = await _look(conflict.path, ctx)
    if entry is not None and not entry.exists:
        return Reconsidered(entry, merged=await _anew(conflict, ctx))
    if entry is None or entry.kind != "file" or entry.data is None:
        return Reconsidered(entry)
    if entry.version == conflict.current_version:
        return Reconsidered(entry, tuple(conflict.hunks), await _blob(conflict.merged_blob, ctx))
    hunks, fits = await _again(conflict, ctx)
    merged = fits if fits is not None else await _merge(conflict, entry.data, ctx)
    return Reconsidered(entry, hunks, None if merged == entry.data else merged)


async def _look(path: str, ctx: ToolContext) -> Entry | None:
    def work(_: object, look: Any) -> Entry | None:
        try:
            found: Entry = look(path)
        except Refused:
            return None
        assert found.version or not found.data  # hashed here, off the loop
        return found

    found = await with_view(ctx, [path], work)
    return None if isinstance(found, Refusal) else found


async def _again(conflict: Conflict, ctx: ToolContext) -> tuple[tuple[HunkState, ...], bytes | None]:
    """The hunks as they stand now; or the content that comes out, where the wish fits by now."""
    args: Mapping[str, Any] = conflict.change.get("args") or {}
    match conflict.change.get("tool"):
        case "apply_patch":
            sections = parse_patch(str(args.get("patch", "")))
            if isinstance(sections, Refusal):
                return (), None
            tried = (await try_patch(sections, ctx)).result
            if isinstance(tried, Refusal):
                mine = tried.path in {None, conflict.path, conflict.change.get("path")}
                return (tried.hunks if mine else ()), None
            return (), next((change.after for change in tried if change.before.path == conflict.path), None)
        case "edit_file":
            edited = await look_and_edit(EditFileArgs.model_validate(args), ctx)
            if isinstance(edited, Refusal):
                return (), None
            return (edited.after.hunks, None) if isinstance(edited.after, Refusal) else ((), edited.after)
        case _:
            return (), None


async def _anew(conflict: Conflict, ctx: ToolContext) -> bytes | None:
    """Of a file that was deleted meanwhile, what it was to become: it can be written again. None: not known, or not alone."""
    proposed = await _blob(conflict.proposed_blob, ctx)
    if proposed is None or conflict.change.get("tool") != "apply_patch":
        return proposed
    sections = parse_patch(str(conflict.change["args"]["patch"]))
    if isinstance(sections, Refusal):
        return None
    choice = Choice(str(conflict.change["path"]), merged=proposed)
    return None if isinstance((await try_patch(sections, ctx, choice)).result, Refusal) else proposed


async def _merge(conflict: Conflict, current: bytes, ctx: ToolContext) -> bytes | None:
    base, proposed = await _blob(conflict.base_blob, ctx), await _blob(conflict.proposed_blob, ctx)
    return None if base is None or proposed is None else await merge(base, current, proposed)


async def _blob(blob_id: str | None, ctx: ToolContext) -> bytes | None:
    return None if blob_id is None else await ctx.blob(blob_id)
