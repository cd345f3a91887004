"""What all writing tools share before the effect: looking with unsaved buffers on top, and the plan of a set of changes.

The tools differ in what they want (a content, a text for another, a patch, a pre-image); from the changes on they are one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from standfast.events.types import ChangedFile, Intent, SeenFile
from standfast.files import protected
from standfast.files.buffers import Buffer
from standfast.files.difference import unified
from standfast.files.entry import Entry, FileChange
from standfast.files.intents import PRE_IMAGE_MAX, BufferIntent, intent_of
from standfast.files.patch_plan import Look
from standfast.files.paths import Root
from standfast.files.refusal import Refusal, Refused
from standfast.files.turn import off_loop
from standfast.tools.base import Plan, ToolContext

SEEN_BLOB_MAX = 1 << 20
"""Bytes of a file as seen that are kept as a merge base."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `plan` hands to `run`: the changes on disk and those in editors."""

    disk: tuple[FileChange, ...]
    buffers: tuple[FileChange, ...]

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return (*self.buffers, *self.disk)


async def with_view(ctx: ToolContext, asked: Sequence[str], work: Callable[[Root, Look], T]) -> T | Refusal:
    """Run blocking work over the workspace in a thread, with the unsaved buffers of the `asked` paths on top of the disk.

    `work` may look at other paths, too; they are taken from the disk. A path that is not allowed comes
    back as its refusal. Raises WorkspaceError.
    """
    resolved = await off_loop(lambda _: _resolve(ctx.workspace, asked))
    buffers = {path: found for path, names in resolved.items() if (found := _open_buffer(ctx, names)) is not None}

    def run() -> T | Refusal:
        with Root(ctx.workspace) as root:

            def look(asked: str, *, follow: bool = True) -> Entry:
                return _on_top(root.look(asked, follow=follow), buffers)

            try:
                return work(root, look)
            except Refused as refused:
                return refused.refusal

    return await off_loop(lambda _: run())


def open_buffer(ctx: ToolContext, path: str) -> Buffer | None:
    """The unsaved buffer of a resolved path; None: the disk is the truth."""
    return _open_buffer(ctx, {path})


def uri_of(ctx: ToolContext, path: str) -> str:
    """The URI of a path in the workspace, as the workspace itself was named."""
    return (ctx.workspace / path).as_uri()


def _resolve(folder: Path, asked: Sequence[str]) -> dict[str, set[str]]:
    """Resolved path → the names under which an editor may have it open."""
    names: dict[str, set[str]] = {}
    with Root(folder) as root:
        for one in asked:
            try:
                path = root.resolve(one)
            except Refused:  # the tool's own look says why
                continue
            names.setdefault(path, {path}).add(one.removeprefix("./"))
    return names


def _open_buffer(ctx: ToolContext, names: set[str]) -> Buffer | None:
    found = (ctx.buffers.get(ctx.workspace / name) for name in sorted(names))
    return next((one for one in found if one is not None and (one.dirty or one.disputed)), None)


def _on_top(entry: Entry, buffers: Mapping[str, Buffer]) -> Entry:
    buffer = buffers.get(entry.path)
    if buffer is None or entry.kind not in {"file", "missing"}:
        return entry
    return replace(entry, kind="file", data=buffer.text.encode("utf-8", "replace"), buffer=buffer)


# -- the plan ---------------------------------------------------------------------------------------------------------


async def plan_edits(ctx: ToolContext, changes: Sequence[FileChange], *, verb: str = "") -> Plan:
    """The plan of a set of changes: intents, differences, digest, risks, pre- and after-images. Raises WorkspaceError."""
    return await off_loop(lambda _: _plan(ctx, changes, verb))


def _plan(ctx: ToolContext, changes: Sequence[FileChange], verb: str) -> Plan:
    """In a thread: hashes and differences of large files take their time."""
    made = _missing_directories(ctx.workspace, changes)
    intents: list[Intent] = []
    files: list[ChangedFile] = []
    blobs: dict[str, bytes] = {}
    for number, change in enumerate(changes):
        intents.append(_intent(ctx, change, number, made))
        files.append(changed_file(ctx, change))
        if change.after is not None and change.after_version is not None:
            blobs[change.after_version] = change.after
        before = change.before
        if before.data is not None and before.version is not None and len(before.data) <= PRE_IMAGE_MAX:
            blobs[before.version] = before.data
    ready = Prepared(
        tuple(change for change in changes if change.before.buffer is None),
        tuple(change for change in changes if change.before.buffer is not None),
    )
    risks = tuple(risk for change in changes for risk in _risks(change))
    return Plan(
        "edit",
        (verb + " " if verb else "") + summary(changes),
        digest=digest(changes),
        files=tuple(files),
        intents=tuple(intents),
        allow_key=f"edit:{changes[0].path}" if len(changes) == 1 and not changes[0].from_path else None,
        risks=risks,
        blobs=blobs,
        state=ready,
    )


def summary(changes: Sequence[FileChange]) -> str:
    """One line for the permission card."""
    verbs = {"add": "Add", "update": "Change", "delete": "Delete", "move": "Move"}
    told = [
        f"{verbs[one.change]} {one.from_path + ' to ' if one.from_path else ''}{one.path}"
        + (" (unsaved text in the editor)" if one.before.buffer else "")
        for one in changes[:3]
    ]
    return ", ".join(told) + (f" and {len(changes) - 3} more files" if len(changes) > 3 else "")


def digest(changes: Sequence[FileChange]) -> str:
    """Over each file's content before and after, so that a permission holds for exactly this (issue B.6)."""
    facts = [
        [
            one.change,
            one.path,
            one.from_path,
            one.before.version,
            one.after_version,
            one.before.mode,
            bool(one.before.buffer),
        ]
        for one in changes
    ]
    return sha256(json.dumps(facts).encode()).hexdigest()


def changed_file(ctx: ToolContext, change: FileChange) -> ChangedFile:
    """The change as it stands in the log and on the wire."""
    before = change.before.data if change.before.exists else None
    kept = before is not None and len(before) <= PRE_IMAGE_MAX
    return ChangedFile(
        uri=uri_of(ctx, change.path),
        kind=change.change,
        from_uri=uri_of(ctx, change.from_path) if change.from_path else None,
        diff=unified(change.path, before, change.after, from_path=change.from_path),
        before_blob=change.before.version if kept else None,
        after_blob=change.after_version,
        before_mode=change.before.mode if before is not None else None,
    )


def seen_after(changes: Sequence[FileChange]) -> tuple[SeenFile, ...]:
    """What the model knows once the changes are made: its own write counts as having read the file whole."""
    seen: list[SeenFile] = []
    for change in changes:
        if change.from_path:
            seen.append(SeenFile(path=change.from_path, version=None, whole=True))
        seen.append(seen_file(change.path, change.after, change.after_version))
    return tuple(seen)


def seen_file(path: str, data: bytes | None, version: str | None, *, whole: bool = True) -> SeenFile:
    """What was seen of a file; its content is named as the merge's base where it is small enough."""
    return SeenFile(
        path=path,
        version=version,
        whole=whole,
        blob=version if data is not None and len(data) <= SEEN_BLOB_MAX else None,
    )


def _intent(ctx: ToolContext, change: FileChange, number: int, made: Mapping[str, list[str]]) -> Intent:
    uri = uri_of(ctx, change.path)
    buffer = change.before.buffer
    if buffer is not None:
        return BufferIntent(
            path=change.path,
            uri=uri,
            version=buffer.version,
            before_blob=change.before.version or "",
            after_blob=change.after_version or "",
        )
    from_uri = uri_of(ctx, change.from_path) if change.from_path else None
    return intent_of(change, number, ctx.call_id, uri=uri, from_uri=from_uri, made=made.get(change.path, []))


def _missing_directories(folder: Path, changes: Sequence[FileChange]) -> dict[str, list[str]]:
    with Root(folder) as root:
        added = (change for change in changes if change.change in {"add", "move"})
        return {change.path: root.missing_directories(change.path) for change in added}


def _risks(change: FileChange) -> list[str]:
    """Sentences for the person; any of them makes the call asked for in every mode."""
    risks: list[str] = []
    for path in dict.fromkeys((change.from_path or change.path, change.path)):
        what = protected.starts_programs(path)
        if what is not None:
            risks.append(f"{path} {what}.")
        if protected.is_secret(path):
            risks.append(f"{path} may hold keys or passwords.")
    before = change.before
    if before.kind == "file" and before.links > 1:
        risks.append(
            f"{before.path} has {before.links} hard links: this name gets a file of its own, the others keep the old one."
        )
    if before.data is not None and len(before.data) > PRE_IMAGE_MAX:
        risks.append(f"{before.path} is larger than {PRE_IMAGE_MAX >> 20} MiB: this cannot be undone.")
    return risks
