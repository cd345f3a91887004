"""apply_patch: several files by one envelope, all or nothing, each hunk where it fits once (R11.3; POLICY.md; issue B.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field

from standfast.events.types import SeenFile
from standfast.files.entry import Entry, FileChange
from standfast.files.patch_apply import Applied, apply_hunks
from standfast.files.patch_parse import Section, parse_patch
from standfast.files.patch_plan import Choice, Look, plan_patch
from standfast.files.refusal import Refusal, Refused
from standfast.files.text import read_text
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.conflicts import Wish
from standfast.tools.edit_recovery import WritesFiles
from standfast.tools.edit_run import carry_out
from standfast.tools.edits import plan_edits, with_view


class ApplyPatchArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    patch: str = Field(description="The whole envelope, from '*** Begin Patch' to '*** End Patch'.")


@dataclass(frozen=True, slots=True)
class Tried:
    """What a patch leads to now: changes, or a refusal and the file that it is about, as it is."""

    result: tuple[FileChange, ...] | Refusal
    entry: Entry | None = None


class ApplyPatch(WritesFiles):
    name = "apply_patch"
    description = (
        "Change, add, delete and move files by one patch; all of it is applied or nothing. Format:\n"
        "*** Begin Patch\n*** Update File: path\n*** Move to: new path (optional)\n@@ line of code above the place (optional)\n"
        " context line\n-removed line\n+added line\n*** End of File (optional)\n*** Add File: path\n+every line\n"
        "*** Delete File: path\n*** End Patch\n"
        "Give enough context that each place fits once. Paths are relative to the workspace."
    )
    effect: Effect = "edit"
    Args = ApplyPatchArgs

    async def plan(self, args: ApplyPatchArgs, ctx: ToolContext) -> Plan | Outcome:
        sections = parse_patch(args.patch)
        if isinstance(sections, Refusal):
            return conflicts.failed(sections)
        tried = await try_patch(sections, ctx)
        if isinstance(tried.result, Refusal):
            return await _refuse(args, ctx, sections, tried.result, tried.entry)
        if not tried.result:
            return Outcome("ok", "The files hold all of this already; nothing was written.")
        return await plan_edits(ctx, tried.result)

    async def run(self, args: ApplyPatchArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        async def refuse(refusal: Refusal) -> Outcome:
            """Somebody was quicker: say how the patch stands to what is there now, but do not put it elsewhere."""
            sections = parse_patch(args.patch)
            if isinstance(sections, Refusal):
                return conflicts.failed(sections)
            tried = await try_patch(sections, ctx)
            now = tried.result if isinstance(tried.result, Refusal) else refusal
            if refusal.reason == "dirty_buffer":
                now = replace(
                    refusal, hunks=now.hunks
                )  # that the editor did not take it says more than what fits by now
            entry = tried.entry or await _current(refusal.path, ctx)
            fits = () if isinstance(tried.result, Refusal) or refusal.reason != "dirty_buffer" else tried.result
            offered = next((change.after for change in fits if change.path == refusal.path), None)
            return await _refuse(args, ctx, sections, now, entry, offered)

        return await carry_out(plan, ctx, refuse)


async def try_patch(sections: Sequence[Section], ctx: ToolContext, choice: Choice | None = None) -> Tried:
    """Evaluate a patch against the workspace as it is, unsaved buffers on top. Touches nothing."""
    asked = [path for section in sections for path in (section.path, section.move_to) if path is not None]
    tried = await with_view(ctx, asked, lambda root, look: _try(sections, look, choice))
    return Tried(tried) if isinstance(tried, Refusal) else tried


def _try(sections: Sequence[Section], look: Look, choice: Choice | None) -> Tried:
    result = plan_patch(sections, look, choice)
    return Tried(result, _entry(look, result.path) if isinstance(result, Refusal) and result.is_conflict else None)


def _entry(look: Look, path: str | None) -> Entry | None:
    try:
        return None if path is None else look(path)
    except Refused:
        return None


async def _current(path: str | None, ctx: ToolContext) -> Entry | None:
    asked = [] if path is None else [path]
    entry = await with_view(ctx, asked, lambda root, look: _entry(look, path))
    return entry if isinstance(entry, Entry) else None


async def _refuse(
    args: ApplyPatchArgs,
    ctx: ToolContext,
    sections: Sequence[Section],
    refusal: Refusal,
    entry: Entry | None,
    offered: bytes | None = None,
) -> Outcome:
    if not refusal.is_conflict:
        return conflicts.failed(refusal)
    path = refusal.path or sections[0].path
    resolved = entry.path if entry is not None else path
    seen = ctx.seen.get(resolved)
    section = next((one for one in sections if one.path == path and one.change == "update"), None)
    base = await _base(seen, ctx)
    proposed = None if section is None or base is None else patched(base, section)
    merged = offered
    if section is not None and entry is not None and entry.data is not None and entry.kind == "file":
        merged = patched(entry.data, section, skip_applied=True) if refusal.reason == "already_applied" else offered
    change = {"tool": "apply_patch", "path": path, "args": {"patch": args.patch}}
    wish = Wish(resolved, change, entry, base, proposed, merged)
    return await conflicts.refused(ctx, "PATCH_CONFLICT", refusal, wish)


async def _base(seen: SeenFile | None, ctx: ToolContext) -> bytes | None:
    return await ctx.blob(seen.blob) if seen is not None and seen.blob is not None else None


def patched(data: bytes, section: Section, *, skip_applied: bool = False) -> bytes | None:
    """The section's hunks on some bytes; None where they do not fit. Pure."""
    text = read_text(data)
    if isinstance(text, Refusal):
        return None
    result = apply_hunks(text, section.hunks, skip_applied=skip_applied)
    return result.text.encode() if isinstance(result, Applied) else None
