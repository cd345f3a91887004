"""A workspace with the tools on it, as the session layer uses them: plan, intents and blobs kept, run, result kept."""

from __future__ import annotations

import base64
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standfast.events.types import Intent, SeenFile
from standfast.files.buffers import Buffer, Buffers, BufferWrite, NoBuffers
from standfast.tools.apply_patch import ApplyPatch
from standfast.tools.base import Outcome, Plan, StartedCall, ToolContext
from standfast.tools.edit_file import EditFile
from standfast.tools.list_files import ListFiles
from standfast.tools.read_file import ReadFile
from standfast.tools.resolve_conflict import ResolveConflict
from standfast.tools.search import Search
from standfast.tools.undo import Undo
from standfast.tools.write_file import WriteFile

TOOLS = {
    tool.name: tool
    for tool in (ReadFile(), ListFiles(), Search(), WriteFile(), EditFile(), ApplyPatch(), Undo(), ResolveConflict())
}


@dataclass
class Started:
    """A call between `tool_started` and its result."""

    tool: Any
    args: Any
    plan: Plan
    ctx: ToolContext
    call: StartedCall


@dataclass
class Desk:
    folder: Path
    buffers: Buffers = field(default_factory=NoBuffers)
    blobs: dict[str, bytes] = field(default_factory=dict)
    seen: dict[str, SeenFile] = field(default_factory=dict)
    calls: int = 0

    async def blob(self, blob_id: str) -> bytes | None:
        return self.blobs.get(blob_id)

    def context(self, call_id: str) -> ToolContext:
        return ToolContext(
            self.folder,
            self.folder,
            "ses_1",
            call_id,
            f"op_{call_id}",
            self.buffers,
            seen=dict(self.seen),
            blob=self.blob,
        )

    async def start(self, name: str, **args: Any) -> Started | Outcome:
        """Plan a call and record what the log would record. An Outcome: it was refused at once."""
        self.calls += 1
        tool = TOOLS[name]
        ctx = self.context(f"call_{self.calls}")
        parsed = tool.Args.model_validate(args)
        plan = await tool.plan(parsed, ctx)
        if isinstance(plan, Outcome):
            self.keep(plan)
            return plan
        self.blobs.update(plan.blobs)
        logged = tuple(Intent.model_validate_json(intent.model_dump_json(by_alias=True)) for intent in plan.intents)
        return Started(tool, parsed, plan, ctx, StartedCall(ctx.call_id, ctx.operation_id, args, logged))

    async def finish(self, started: Started) -> Outcome:
        outcome = await started.tool.run(started.args, started.plan, started.ctx)
        self.keep(outcome)
        return outcome

    async def call(self, name: str, **args: Any) -> Outcome:
        started = await self.start(name, **args)
        return started if isinstance(started, Outcome) else await self.finish(started)

    def keep(self, outcome: Outcome) -> None:
        self.blobs.update(outcome.blobs)
        for one in outcome.seen:
            self.seen[one.path] = one

    async def undo(self, outcome: Outcome) -> Outcome:
        changes = [change.model_dump(by_alias=True) for change in reversed(outcome.files)]
        return await self.call("undo", changes=changes)

    async def resolve(self, outcome: Outcome, action: str, line: int | None = None) -> Outcome:
        conflict = outcome.conflicts[0].model_dump(mode="json", by_alias=True)
        return await self.call("resolve_conflict", conflict=conflict, action=action, line=line)


class OneEditor:
    """An editor with some documents open, as `editor/` shows them to the tools. `answer` is what it does with an edit."""

    def __init__(self, folder: Path, texts: Mapping[str, str], *, answer: str = "applied", **flags: bool) -> None:
        self.folder = folder
        self.texts = dict(texts)
        self.versions = dict.fromkeys(texts, 7)
        self.answer = answer
        self.flags = {"dirty": True, **flags}

    def get(self, path: Path) -> Buffer | None:
        name = str(path.relative_to(self.folder))
        if name not in self.texts:
            return None
        return Buffer(path.as_uri(), self.versions[name], self.texts[name], **self.flags)

    async def write(self, buffer: Buffer, text: str) -> BufferWrite:
        name = next(name for name in self.texts if (self.folder / name).as_uri() == buffer.uri)
        if self.answer != "applied":
            return BufferWrite(self.answer)  # type: ignore[arg-type]
        assert buffer.version == self.versions[name]
        self.texts[name] = text
        self.versions[name] += 1
        return BufferWrite("applied", text)


# -- workspaces as data -----------------------------------------------------------------------------------------------


def lay_out(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the files of a case (format: patch_cases/POLICY.md)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "symlink" in spec:
            path.symlink_to(spec["symlink"])
        elif spec.get("dir"):
            path.mkdir()
        else:
            path.write_bytes(content_of(spec))
            path.chmod(int(spec.get("mode", "0644"), 8))


def content_of(spec: Mapping[str, Any]) -> bytes:
    return base64.b64decode(spec["base64"]) if "base64" in spec else spec["text"].encode()


def snapshot(folder: Path) -> dict[str, Any]:
    """Every file and link of a tree: path → (bytes, mode) or link target. Directories only where they are empty."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            if not any(path.iterdir()):
                found[name] = "directory"
        elif path.is_file():
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        else:
            found[name] = "special"
    return found
