"""Carrying out a plan of edits: unsaved buffers first, by the editor itself, then the disk as one transaction.

What the plan saw is looked at again; where the world moved since, the call is refused and nothing is changed (issue B.6).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from standfast.files.entry import FileChange
from standfast.files.intents import file_intents, names_of
from standfast.files.paths import Root
from standfast.files.refusal import Refusal
from standfast.files.transaction import Step, step_of
from standfast.files.turn import off_loop, put_in_place
from standfast.tools.base import Outcome, Plan, ToolContext
from standfast.tools.edits import Prepared, open_buffer, seen_after

Refuse = Callable[[Refusal], Awaitable[Outcome]]
"""How the tool words a refusal at the moment of writing; `refusal.path` is the resolved path."""


async def carry_out(plan: Plan, ctx: ToolContext, refuse: Refuse) -> Outcome:
    """Make the plan's changes, all or none. Raises StandfastError (`RollbackFailed`), WorkspaceError, CancelledError."""
    ready: Prepared = plan.state
    done: list[FileChange] = []
    refusal = _buffers_moved(ready, ctx)
    for change in ready.buffers if refusal is None else ():
        refusal = await _write_buffer(change, ctx)
        if refusal is not None:
            break
        done.append(change)
    if refusal is None:
        refusal = await put_in_place(ctx.workspace, _steps(plan, ready))
    if refusal is None:
        await _tidy(plan, ctx)
        return success(ready.changes, plan, ctx)
    kept = [change.path for change in done if not await _restore_buffer(change, ctx)]
    if kept:
        refusal = Refusal(
            refusal.reason,
            f"{refusal.message} The unsaved text of {', '.join(kept)} had been changed already and could not be put back.",
            refusal.path,
        )
    return await refuse(refusal)


def success(changes: Sequence[FileChange], plan: Plan, ctx: ToolContext) -> Outcome:
    """The result of changes that were made."""
    verbs = {"add": "Added", "update": "Changed", "delete": "Deleted", "move": "Moved"}
    lines: list[str] = []
    for one in changes:
        where = f"{one.from_path} to {one.path}" if one.from_path else one.path
        version = f" (version {one.after_version})" if one.after_version else ""
        unsaved = " in the editor, not saved" if one.before.buffer is not None else ""
        lines.append(f"{verbs[one.change]} {where}{unsaved}{version}.")
    return Outcome("ok", "\n".join(lines), files=plan.files, seen=seen_after(changes), blobs=plan.blobs)


def _steps(plan: Plan, ready: Prepared) -> list[Step]:
    """The steps of the plan's own intents: what runs is what stands in the log."""
    after = {change.path: change.after for change in ready.disk}
    return [step_of(name, after.get(name.path)) for intent in file_intents(plan.intents) for name in names_of(intent)]


async def _tidy(plan: Plan, ctx: ToolContext) -> None:
    """Remove the directories that stood for the files alone that were taken away."""
    left = [path for intent in file_intents(plan.intents) for path in intent.left]

    def remove() -> None:
        with Root(ctx.workspace) as root:
            root.remove_directories(dict.fromkeys(left))

    if left:
        await off_loop(lambda _: remove())


def _buffers_moved(ready: Prepared, ctx: ToolContext) -> Refusal | None:
    """Whether unsaved text appeared, went or changed since the plan."""
    for change in ready.disk:
        for path in {change.before.path, change.path}:
            if open_buffer(ctx, path) is not None:
                return Refusal("dirty_buffer", f"{path} has unsaved text in the editor by now.", path)
    for change in ready.buffers:
        now = open_buffer(ctx, change.before.path)
        if now is None or change.before.buffer is None or now.text != change.before.buffer.text:
            return Refusal("file_changed", f"The unsaved text of {change.path} changed in the meantime.", change.path)
    return None


async def _write_buffer(change: FileChange, ctx: ToolContext) -> Refusal | None:
    """Change unsaved text through the editor. Never written to the disk behind it, never repeated."""
    buffer = open_buffer(ctx, change.before.path)
    if buffer is None or change.after is None:
        return Refusal("file_changed", f"The unsaved text of {change.path} is gone.", change.path)
    if buffer.disputed:
        said = f"{change.path} has different unsaved text in two editors; which one counts is for the person to say."
        return Refusal("dirty_buffer", said, change.path)
    if not buffer.editable:
        return Refusal("dirty_buffer", f"{change.path} has unsaved text, and this editor takes no edits.", change.path)
    written = await ctx.buffers.write(buffer, change.after.decode())
    if written.outcome == "applied":
        return None
    if written.outcome == "refused":
        return Refusal(
            "dirty_buffer", f"The editor did not take the edit of the unsaved text of {change.path}.", change.path
        )
    said = f"It is unknown whether the editor took the edit of {change.path}: no report came. It is not repeated."
    return Refusal("dirty_buffer", said, change.path)


async def _restore_buffer(change: FileChange, ctx: ToolContext) -> bool:
    """Take a buffer's edit back, where it still is what we made it."""
    buffer = open_buffer(ctx, change.before.path)
    if buffer is None or change.after is None or change.before.buffer is None:
        return False
    if buffer.text != change.after.decode():
        return False
    return (await ctx.buffers.write(buffer, change.before.buffer.text)).outcome == "applied"
