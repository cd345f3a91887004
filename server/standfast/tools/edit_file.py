"""edit_file: one text for another in a file. Needs no prior read: it applies where its old text stands once (R11.3)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from standfast.events.types import SeenFile
from standfast.files.entry import Entry, FileChange
from standfast.files.patch_plan import writable
from standfast.files.refusal import Refusal, Refused
from standfast.files.substitute import replace_text
from standfast.files.text import read_text
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.conflicts import Wish, Word
from standfast.tools.edit_recovery import WritesFiles
from standfast.tools.edit_run import carry_out
from standfast.tools.edits import plan_edits, with_view

CANNOT_BE = frozenset({"malformed", "unsupported_encoding", "binary", "read_only"})
"""Reasons that are no matter between the file and the wish."""


class EditFileArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(description="Relative to the workspace.")
    old_text: str = Field(description="Text of the file, exactly as it is, long enough to stand there once.")
    new_text: str = Field(description="What is to stand there instead.")
    replace_all: bool = Field(False, description="Replace every occurrence.")


@dataclass(frozen=True, slots=True)
class Edited:
    """What was found, and what it becomes or why not."""

    entry: Entry
    after: bytes | Refusal


class EditFile(WritesFiles):
    name = "edit_file"
    description = (
        "Replace old_text by new_text in a file. old_text must stand there exactly once, white space included, unless "
        "replace_all is set."
    )
    effect: Effect = "edit"
    Args = EditFileArgs

    async def plan(self, args: EditFileArgs, ctx: ToolContext) -> Plan | Outcome:
        edited = await look_and_edit(args, ctx)
        if isinstance(edited, Refusal):
            return conflicts.failed(edited)
        if isinstance(edited.after, Refusal):
            return await self._refuse(args, ctx, edited, edited.after)
        return await plan_edits(ctx, [FileChange("update", edited.entry, edited.after)])

    async def run(self, args: EditFileArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        async def refuse(refusal: Refusal) -> Outcome:
            """Somebody was quicker: say what is there now."""
            edited = await look_and_edit(args, ctx)
            if isinstance(edited, Refusal) or not refusal.is_conflict:
                return conflicts.failed(edited if isinstance(edited, Refusal) else refusal)
            return await self._refuse(args, ctx, edited, refusal)

        return await carry_out(plan, ctx, refuse)

    async def _refuse(self, args: EditFileArgs, ctx: ToolContext, edited: Edited, refusal: Refusal) -> Outcome:
        entry = edited.entry
        seen = ctx.seen.get(entry.path)
        if refusal.reason in CANNOT_BE or (refusal.reason in {"not_found", "not_a_file"} and not _was_seen(seen)):
            return conflicts.failed(refusal)
        base = await ctx.blob(seen.blob) if seen is not None and seen.blob is not None else None
        proposed = None if base is None else edit(base, args)
        word: Word = "FILE_CHANGED"
        if refusal.reason == "ambiguous" or (seen is not None and seen.version == entry.version):
            word = "PATCH_CONFLICT"
        change = {
            "tool": "edit_file",
            "path": args.path,
            "args": {"path": args.path, "old_text": args.old_text, "new_text": args.new_text},
        }
        offered = edited.after if refusal.reason == "dirty_buffer" and isinstance(edited.after, bytes) else None
        wish = Wish(entry.path, change, entry, base, proposed if isinstance(proposed, bytes) else None, offered)
        return await conflicts.refused(ctx, word, refusal, wish)


async def look_and_edit(args: EditFileArgs, ctx: ToolContext, *, at_line: int | None = None) -> Edited | Refusal:
    """The file as it is (an unsaved buffer on top), edited. A refusal alone: the path itself is not allowed."""
    return await with_view(ctx, [args.path], lambda root, look: _edited(look(args.path), args, at_line))


def _edited(entry: Entry, args: EditFileArgs, at_line: int | None) -> Edited:
    if not entry.exists:
        return Edited(entry, Refusal("not_found", f"{args.path} is not there.", args.path))
    if entry.kind != "file" or entry.data is None:
        return Edited(entry, Refusal("not_a_file", f"{args.path} is no regular file.", args.path))
    try:
        writable(entry, args.path)
    except Refused as refused:
        return Edited(entry, refused.refusal)
    return Edited(entry, edit(entry.data, args, at_line=at_line))


def edit(data: bytes, args: EditFileArgs, *, at_line: int | None = None) -> bytes | Refusal:
    """The bytes of a file with the edit made. Pure."""
    text = read_text(data)
    if isinstance(text, Refusal):
        return text.at(args.path)
    result = replace_text(text, args.old_text, args.new_text, everywhere=args.replace_all, at_line=at_line)
    return result.at(args.path) if isinstance(result, Refusal) else result.encode()


def _was_seen(seen: SeenFile | None) -> bool:
    return seen is not None and seen.version is not None
