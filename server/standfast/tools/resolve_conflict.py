"""resolve_conflict: carry out a person's choice about a refused write: the merge, or the candidate they chose (R11.4).

Not offered to the model. The wish is evaluated anew against the file as it is now; where it does not fit any more, nothing is
changed and it is said. A call like any other: intents first, one transaction, undoable.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from standfast.events.types import Conflict
from standfast.files.entry import FileChange
from standfast.files.patch_parse import parse_patch
from standfast.files.patch_plan import Choice, writable
from standfast.files.refusal import Refusal, Refused
from standfast.tools import conflicts
from standfast.tools.apply_patch import try_patch
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.edit_file import EditFileArgs, look_and_edit
from standfast.tools.edit_recovery import WritesFiles
from standfast.tools.edit_run import carry_out
from standfast.tools.edits import plan_edits
from standfast.tools.reconsider import reconsider

Changes = tuple[FileChange, ...]
STALE = Refusal(
    "file_changed", "The file was changed again, and the choice does not fit it any more. Nothing was changed."
)


class ResolveConflictArgs(BaseModel):
    conflict: dict[str, Any]
    """The `conflict_raised` fact, camelCase."""
    action: Literal["merge", "applyAt"]
    line: int | None = Field(None, description="With applyAt: the candidate's line, from 1, in the file as it is now.")
    version: str | None = Field(
        None, description="Of the content in which the line was counted; another one is refused."
    )


class ResolveConflict(WritesFiles):
    name = "resolve_conflict"
    description = "Carry out what a person chose about a refused write."
    effect: Effect = "edit"
    Args = ResolveConflictArgs

    async def plan(self, args: ResolveConflictArgs, ctx: ToolContext) -> Plan | Outcome:
        conflict = Conflict.model_validate(args.conflict)
        if args.action == "merge":
            changes = await _merged(conflict, ctx)
        else:
            changes = await _at_line(conflict, args, ctx)
        if isinstance(changes, Refusal):
            return conflicts.failed(changes)
        if not changes:
            return Outcome("ok", f"{conflict.path} holds this already; nothing was written.")
        return await plan_edits(ctx, changes)

    async def run(self, args: ResolveConflictArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        async def refuse(refusal: Refusal) -> Outcome:
            return conflicts.failed(refusal)

        return await carry_out(plan, ctx, refuse)


async def _merged(conflict: Conflict, ctx: ToolContext) -> Changes | Refusal:
    """The merge with the file as it is now."""
    now = await reconsider(conflict, ctx)
    if now.merged is None or now.entry is None:
        return STALE
    if conflict.change.get("tool") == "apply_patch":
        return await _patch(conflict, Choice(str(conflict.change["path"]), merged=now.merged), ctx)
    try:
        writable(now.entry, conflict.path)
    except Refused as refused:
        return refused.refusal
    if now.is_missing:
        return (FileChange("add", now.entry, now.merged),)
    return () if now.merged == now.entry.data else (FileChange("update", now.entry, now.merged),)


async def _at_line(conflict: Conflict, args: ResolveConflictArgs, ctx: ToolContext) -> Changes | Refusal:
    """The wish at the candidate that was chosen; it must be one in the file as it is now, and never another one."""
    line, tool = args.line, conflict.change.get("tool")
    if line is None or tool not in {"apply_patch", "edit_file"}:
        return Refusal("malformed", "This conflict has no places to choose from. Nothing was changed.")
    now = await reconsider(conflict, ctx)
    hunk = next((hunk.index for hunk in now.hunks if line in (hunk.candidate_lines or ())), None)
    if hunk is None or (args.version is not None and args.version != now.version):
        return STALE
    if tool == "apply_patch":
        return await _patch(conflict, Choice(str(conflict.change["path"]), {hunk: line}, skip_applied=True), ctx)
    edited = await look_and_edit(EditFileArgs.model_validate(conflict.change["args"]), ctx, at_line=line)
    if isinstance(edited, Refusal):
        return edited
    return edited.after if isinstance(edited.after, Refusal) else (FileChange("update", edited.entry, edited.after),)


async def _patch(conflict: Conflict, choice: Choice, ctx: ToolContext) -> Changes | Refusal:
    """The whole patch, with the person's choice for one of its files: all of it or nothing, as ever."""
    sections = parse_patch(str(conflict.change["args"]["patch"]))
    return sections if isinstance(sections, Refusal) else (await try_patch(sections, ctx, choice)).result
