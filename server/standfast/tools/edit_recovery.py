"""After a crash: what became of a writing call, and carrying it to its end or taking it back. The same for every writing tool.

Goes by the intents and the blobs alone (R8.2, R9.2): the arguments are not evaluated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from standfast.errors import NotAvailable
from standfast.events.types import ChangedFile, SeenFile, Target, Verdict
from standfast.files.difference import unified
from standfast.files.intents import BufferIntent, FileIntent, buffer_intents, file_intents
from standfast.files.settle import Action, look, read_blobs, settle
from standfast.files.turn import off_loop
from standfast.files.verify import FileVerdict, evidence, overall
from standfast.files.version import text_version
from standfast.tools.base import Outcome, Settlement, StartedCall, ToolContext, Verification
from standfast.tools.edits import seen_file


class WritesFiles:
    """The parts of `Tool` that all writing tools have in common."""

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """By content, file by file; the editor's text for unsaved buffers. Sweeps journalled temporary names."""
        intents = file_intents(call.intents)
        blobs = await read_blobs(intents, ctx.blob)
        files = await look(ctx.workspace, intents, blobs) if intents else ()
        buffers = [_buffer_verdict(one, ctx) for one in buffer_intents(call.intents)]
        targets = _targets(files, buffers)
        verdict = overall([target.verdict for target in targets]) if targets else "not_applied"
        told = await off_loop(lambda _: evidence(files, blobs))
        said = " ".join(filter(None, (told, *(_buffer_evidence(*one) for one in buffers))))
        outcome = await off_loop(lambda _: _outcome(verdict, said, files, blobs))
        return Verification(verdict, targets, said, outcome)

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """`complete` and `undo` on the disk. Raises NotAvailable (`ActionNotAvailable`): another action, unsaved text,
        or a file that holds neither side."""
        intents = file_intents(call.intents)
        if action not in {"complete", "undo"} or not intents:
            raise NotAvailable("ActionNotAvailable", f"'{action}' does not fit this call. Nothing was changed.")
        blobs = await read_blobs(intents, ctx.blob)
        act = cast("Action", action)
        settled = await settle(ctx.workspace, act, intents, blobs)
        if settled.refusal is not None:
            raise NotAvailable("ActionNotAvailable", settled.refusal.message)
        restored = set(settled.restored)
        wanted: Verdict = "applied" if action == "complete" else "not_applied"
        buffers = [_buffer_verdict(one, ctx) for one in buffer_intents(call.intents)]
        targets = _targets(settled.files, buffers, dict.fromkeys(restored, wanted))
        verdict = overall([target.verdict for target in targets])
        said = await off_loop(lambda _: evidence(settled.files, blobs))
        files = await off_loop(lambda _: _changed(settled.files, blobs)) if action == "complete" else ()
        return Settlement(verdict, said, files, _seen(settled.files), targets)


def _targets(
    files: Sequence[FileVerdict],
    buffers: Sequence[tuple[BufferIntent, Verdict]],
    overruled: Mapping[str, Verdict] | None = None,
) -> tuple[Target, ...]:
    of_files = [
        Target(uri=file.intent.uri, verdict=(overruled or {}).get(file.intent.path, file.verdict)) for file in files
    ]
    return (*of_files, *(Target(uri=intent.uri, verdict=verdict) for intent, verdict in buffers))


def _outcome(verdict: Verdict, said: str, files: Sequence[FileVerdict], blobs: Mapping[str, bytes]) -> Outcome | None:
    """The result of a call whose verdict settles it; never a lie about the others."""
    if verdict == "applied":
        content = f"It was applied before the interruption. {said}"
        return Outcome("ok", content, files=_changed(files, blobs), seen=_seen(files))
    if verdict == "not_applied":
        content = f"It was interrupted before it changed anything. {said} Do it again if it is still wanted."
        return Outcome("error", content, reason="not_applied")
    return None


def _changed(files: Sequence[FileVerdict], blobs: Mapping[str, bytes]) -> tuple[ChangedFile, ...]:
    return tuple(_changed_file(file.intent, blobs) for file in files if file.verdict == "applied")


def _changed_file(intent: FileIntent, blobs: Mapping[str, bytes]) -> ChangedFile:
    before = blobs.get(intent.before_blob) if intent.before_blob else None
    after = blobs.get(intent.after_blob) if intent.after_blob else None
    return ChangedFile(
        uri=intent.uri,
        kind=intent.change,
        from_uri=intent.from_uri,
        diff=unified(intent.path, before, after, from_path=intent.from_path),
        before_blob=intent.before_blob,
        after_blob=intent.after_blob,
        before_mode=intent.before.mode if intent.before else None,
    )


def _seen(files: Sequence[FileVerdict]) -> tuple[SeenFile, ...]:
    """What the model may take as known: its own content where it stands, the old one where that stands."""
    seen: list[SeenFile] = []
    for one in (name for file in files for name in file.names):
        if one.state == "after":
            seen.append(seen_file(one.name.path, one.found.data, one.found.version))
    return tuple(seen)


def _buffer_verdict(intent: BufferIntent, ctx: ToolContext) -> tuple[BufferIntent, Verdict]:
    """The open document's text tells; without it the disk says nothing (design.md "Verification")."""
    buffer = ctx.buffers.get(ctx.workspace / intent.path)
    if buffer is None:
        return intent, "unknown"
    version = text_version(buffer.text)
    if version == intent.after_blob:
        return intent, "applied"
    return intent, "not_applied" if version == intent.before_blob else "diverged"


def _buffer_evidence(intent: BufferIntent, verdict: Verdict) -> str:
    sentences = {
        "unknown": "is not open in an editor, so nobody can tell what its unsaved text is",
        "applied": "holds in the editor the text that was to be put there (not saved by us)",
        "not_applied": "holds in the editor the text from before",
        "diverged": "holds in the editor neither the text from before nor the one that was to be put there",
    }
    return f"{intent.path} {sentences[verdict]}."
