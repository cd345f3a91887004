"""undo: give files back what they held before a run or a call changed them. Not offered to the model (issue B.7).

A call like any other: intents first, one transaction, itself undoable. Where a file is still what was left, it gets its
pre-image; where it is not, the undoing is merged into it; where that is not clean, it stays and a conflict is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from standfast.events.types import ChangedFile, Conflict, Intent
from standfast.files.entry import Entry
from standfast.files.intents import FileIntent
from standfast.files.merge import merge
from standfast.files.patch_plan import Look, Pending
from standfast.files.refusal import Refusal, Refused
from standfast.files.version import version_of
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.conflicts import Wish
from standfast.tools.edit_recovery import WritesFiles
from standfast.tools.edit_run import carry_out
from standfast.tools.edits import plan_edits, with_view


class UndoArgs(BaseModel):
    changes: list[ChangedFile]
    """In the order in which they are to be taken back: the newest first."""
    made: list[str] = []
    """Directories that the changes had made; they go again where nothing else is in them."""


class Undo(WritesFiles):
    name = "undo"
    description = "Restore files as they were before changes."
    effect: Effect = "edit"
    Args = UndoArgs

    async def plan(self, args: UndoArgs, ctx: ToolContext) -> Plan | Outcome:
        undoing = _Undoing(ctx)
        await undoing.look(args.changes)
        for change in args.changes:
            await undoing.take_back(change)
        changes = undoing.pending.changes()
        if changes:
            plan = await plan_edits(ctx, changes, verb="Undo:")
            intents = tuple(_leaving(intent, args.made) for intent in plan.intents)
            return replace(plan, intents=intents, state=(plan.state, tuple(undoing.refused)))
        if undoing.refused:
            return _with_conflicts(Outcome("error", "Nothing could be undone.", reason="CONFLICT"), undoing.refused)
        return Outcome("ok", "The files are already as they were before.")

    async def run(self, args: UndoArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        async def refuse(refusal: Refusal) -> Outcome:
            path = refusal.path or ""
            entry = await with_view(ctx, [path], lambda root, look: look(path))
            current = entry if isinstance(entry, Entry) else None
            return await conflicts.refused(ctx, "FILE_CHANGED", refusal, Wish(path, {"tool": "undo"}, current))

        edits, refused = plan.state
        return _with_conflicts(await carry_out(replace(plan, state=edits), ctx, refuse), refused)


def _leaving(intent: Intent, made: Sequence[str]) -> Intent:
    """The intent, with the directories that stood for its file alone."""
    if not isinstance(intent, FileIntent) or (intent.after is not None and intent.from_path is None):
        return intent
    gone = intent.from_path or intent.path
    return intent.model_copy(update={"left": tuple(path for path in made if gone.startswith(f"{path}/"))})


def _with_conflicts(outcome: Outcome, refused: Sequence[Outcome]) -> Outcome:
    """The outcome, with the conflicts of the files that could not be restored."""
    found: tuple[Conflict, ...] = tuple(conflict for one in refused for conflict in one.conflicts)
    blobs = {key: data for one in (*refused, outcome) for key, data in one.blobs.items()}
    content = "\n".join((outcome.content, *(one.content.split("\n", 1)[0] for one in refused)))
    return replace(outcome, content=content, conflicts=(*outcome.conflicts, *found), blobs=blobs)


class _Undoing:
    """Changes taken back one after the other, each upon what the later ones left."""

    def __init__(self, ctx: ToolContext) -> None:
        self.ctx = ctx
        self.entries: dict[str, Entry | Refusal] = {}
        self.pending = Pending(self._known)
        self.refused: list[Outcome] = []

    async def look(self, changes: Sequence[ChangedFile]) -> None:
        """Look at every file once, in one go. The paths were resolved when they were changed: a link that stands at one is
        what was changed, or has come since, and leads nowhere that is meant."""
        uris = [uri for change in changes for uri in (change.uri, change.from_uri) if uri is not None]
        paths = list(dict.fromkeys(_relative(uri, self.ctx.workspace) for uri in uris))

        def work(_: object, see: Look) -> dict[str, Entry | Refusal]:
            found: dict[str, Entry | Refusal] = {}
            for path in paths:
                try:
                    found[path] = see(path, follow=False)
                except Refused as refused:
                    found[path] = refused.refusal
            return found

        found = await with_view(self.ctx, paths, work)
        self.entries = dict.fromkeys(paths, found) if isinstance(found, Refusal) else found

    async def take_back(self, change: ChangedFile) -> None:
        path = _relative(change.uri, self.ctx.workspace)
        old = path if change.from_uri is None else _relative(change.from_uri, self.ctx.workspace)
        try:
            entry, place = self.pending.see(path), self.pending.see(old)
        except Refused as refused:
            self.refused.append(conflicts.failed(refused.refusal))
            return
        before = await self._blob(change.before_blob)
        after = await self._blob(change.after_blob)
        if change.kind != "add" and before is None:
            why = "was not kept (too large)" if change.before_blob is None else "is no longer in the store"
            await self._refuse(change, entry, "no_pre_image", f"What it held before {why}.", None, None)
            return
        now = self.pending.data(entry)
        content = await self._content(change, now, before, after)
        occupied = place.path != entry.path and self.pending.is_taken(place)
        occupied = occupied or (entry.kind == "link" and now not in (before, after))
        if isinstance(content, Refusal) or occupied or entry.is_read_only:
            said = (
                content.message
                if isinstance(content, Refusal)
                else "it is read-only or a link by now, or its old name is taken."
            )
            await self._refuse(change, entry, "file_changed", f"{path} was left as it is: {said}", after, before)
            return
        self._put(change, entry, place, content)

    async def _content(
        self, change: ChangedFile, now: bytes | None, before: bytes | None, after: bytes | None
    ) -> bytes | Refusal | None:
        """What the file is to hold (None: nothing), or why that cannot be said."""
        if now == before:
            return before
        if now == after or (now is not None and change.after_blob == version_of(now)):
            return before
        if now is None or before is None or after is None:
            return Refusal("file_changed", "somebody else added, changed or deleted it since.")
        merged = await merge(after, now, before)
        return merged if merged is not None else Refusal("file_changed", "somebody else changed the same lines since.")

    def _put(self, change: ChangedFile, entry: Entry, place: Entry, content: bytes | None) -> None:
        if place.path != entry.path:
            self.pending.put(entry, None)
            self.pending.put(place, content, mode=change.before_mode)
            self.pending.moves[place.path] = entry.path
            return
        self.pending.put(entry, content, mode=change.before_mode)

    async def _refuse(
        self, change: ChangedFile, entry: Entry, reason: str, said: str, base: bytes | None, proposed: bytes | None
    ) -> None:
        wish = Wish(entry.path, {"tool": "undo", "path": entry.path}, entry, base, proposed)
        self.refused.append(await conflicts.refused(self.ctx, "FILE_CHANGED", Refusal(reason, said, entry.path), wish))

    async def _blob(self, blob: str | None) -> bytes | None:
        return None if blob is None else await self.ctx.blob(blob)

    def _known(self, asked: str, *, follow: bool = True) -> Entry:
        found = self.entries[asked]
        if isinstance(found, Refusal):
            raise Refused(found)
        return found


def _relative(uri: str, workspace: Path) -> str:
    """A file URI as a path relative to the workspace. One that lies elsewhere stays absolute and is refused later."""
    path = Path(unquote(urlsplit(uri).path, errors="surrogateescape"))
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
