"""write_file: a file's whole content. An existing file must have been read whole, and be as it was read (R11.1, R11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from standfast.events.types import SeenFile
from standfast.files.entry import Entry, FileChange
from standfast.files.patch_plan import writable
from standfast.files.refusal import Refusal, Refused
from standfast.files.substitute import whole_content
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.conflicts import Wish
from standfast.tools.edit_recovery import WritesFiles
from standfast.tools.edit_run import carry_out
from standfast.tools.edits import plan_edits, seen_file, with_view


class WriteFileArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(description="Relative to the workspace.")
    content: str = Field(description="The whole new content.")
    expected_version: str | None = Field(None, description="The version that read_file gave, if any.")


class WriteFile(WritesFiles):
    name = "write_file"
    description = (
        "Write a whole file. A new file is made with its directories. An existing file must have been read whole before, "
        "and is not overwritten if somebody changed it since."
    )
    effect: Effect = "edit"
    Args = WriteFileArgs

    async def plan(self, args: WriteFileArgs, ctx: ToolContext) -> Plan | Outcome:
        found = await with_view(ctx, [args.path], lambda root, look: _look(args, look(args.path)))
        if isinstance(found, Refusal):
            return conflicts.failed(found)
        entry, content = found
        seen = ctx.seen.get(entry.path)
        refusal = _stale(args, entry, seen)
        if refusal is not None:
            return await _refuse(ctx, args, refusal, entry, content, seen)
        if isinstance(content, Refusal):
            return conflicts.failed(content)
        if entry.exists and content == entry.data and entry.data is not None:
            said = f"{entry.path} holds this content already (version {entry.version}); nothing was written."
            known = seen_file(entry.path, entry.data, entry.version)
            return Outcome("ok", said, seen=(known,), blobs={known.blob: entry.data} if known.blob else {})
        return await plan_edits(ctx, [FileChange("update" if entry.exists else "add", entry, content)])

    async def run(self, args: WriteFileArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        async def refuse(refusal: Refusal) -> Outcome:
            """Somebody was quicker: say what is there now."""
            if not refusal.is_conflict:
                return conflicts.failed(refusal)
            found = await with_view(ctx, [args.path], lambda root, look: _look(args, look(args.path)))
            if isinstance(found, Refusal):
                return conflicts.failed(found)
            return await _refuse(ctx, args, refusal, *found, ctx.seen.get(found[0].path))

        return await carry_out(plan, ctx, refuse)


def _look(args: WriteFileArgs, entry: Entry) -> tuple[Entry, bytes | Refusal] | Refusal:
    """What is there, and the content that it would get."""
    if entry.kind == "special":
        return Refusal("not_a_file", f"{args.path} is no regular file; it was left as it is.", args.path)
    try:
        writable(entry, args.path)
    except Refused as refused:
        return refused.refusal
    assert entry.version or not entry.data  # hashed here, off the loop
    return entry, whole_content(entry.data if entry.kind == "file" else None, args.content)


def _stale(args: WriteFileArgs, entry: Entry, seen: SeenFile | None) -> Refusal | None:
    """Why the file is not the one that the model has in mind. A change of mtime alone is none."""
    known = args.expected_version or (seen.version if seen else None)
    if entry.kind == "directory":
        return Refusal("not_a_file", f"{args.path} is a directory.", args.path)
    if not entry.exists:
        return Refusal("not_found", f"{args.path} was deleted since you saw it.", args.path) if known else None
    if seen is None or (seen.version is not None and not seen.whole):
        return Refusal("not_read", f"{args.path} exists, and you have not read it whole.", args.path)
    if seen.version is None:
        return Refusal("exists", f"{args.path} was made by somebody else since you looked.", args.path)
    if entry.version not in {seen.version} or (args.expected_version and args.expected_version != entry.version):
        return Refusal("file_changed", f"{args.path} was changed by somebody else since you read it.", args.path)
    return None


async def _refuse(
    ctx: ToolContext,
    args: WriteFileArgs,
    refusal: Refusal,
    entry: Entry,
    content: bytes | Refusal,
    seen: SeenFile | None,
) -> Outcome:
    if refusal.reason == "not_a_file" and (seen is None or seen.version is None):
        return conflicts.failed(refusal)
    base = await ctx.blob(seen.blob) if seen is not None and seen.blob is not None else None
    change: Mapping[str, Any] = {"tool": "write_file", "path": args.path}
    proposed = content if isinstance(content, bytes) else None
    as_read = seen is not None and seen.version == entry.version
    merged = proposed if refusal.reason == "dirty_buffer" and as_read else None
    wish = Wish(entry.path, change, entry, base, proposed, merged)
    word = "FILE_NOT_READ" if refusal.reason == "not_read" else "FILE_CHANGED"
    return await conflicts.refused(ctx, word, refusal, wish)
