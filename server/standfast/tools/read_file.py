"""read_file: a file's text by lines, with its version. Unsaved text in an editor is the truth and is marked (R11.1, R11.2)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from standfast.files import protected
from standfast.files.entry import Entry
from standfast.files.refusal import Refusal
from standfast.files.text import read_text, shown, split_lines
from standfast.files.turn import off_loop
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.edits import seen_file, with_view
from standfast.tools.reading import ReadsFiles

FILE_MAX = 64 << 20
"""Bytes of a file that is read at all."""
LINES_MAX = 2_000
CHARS_MAX = 120_000
LINE_MAX = 4_000
"""Characters of one line; a longer one is cut and the file does not count as read whole."""


class ReadFileArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(description="Relative to the workspace.")
    offset: int | None = Field(None, ge=1, description="First line, from 1.")
    limit: int | None = Field(None, ge=1, description="Number of lines.")


class ReadFile(ReadsFiles):
    name = "read_file"
    description = (
        "Read a text file of the workspace. The first line of the answer names the lines shown and the file's version; the "
        f"text follows as it is. At most {LINES_MAX} lines at once; go on with offset."
    )
    effect: Effect = "read"
    Args = ReadFileArgs

    async def plan(self, args: ReadFileArgs, ctx: ToolContext) -> Plan | Outcome:
        entry = await _look(args, ctx)
        if isinstance(entry, Refusal):
            return conflicts.failed(entry)
        secret = any(protected.is_secret(path) for path in (args.path, entry.path))
        risks = (
            (f"{entry.path} may hold keys or passwords; the model's provider would get to see them.",) if secret else ()
        )
        return Plan(
            "read", f"Read {entry.path}", digest=f"read:{entry.path}", risks=risks, allow_key=f"read:{entry.path}"
        )

    async def run(self, args: ReadFileArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        entry = await _look(args, ctx)
        if isinstance(entry, Refusal):
            return conflicts.failed(entry)
        if entry.path != plan.digest.removeprefix("read:"):
            return Outcome("error", f"{args.path} leads to another file by now. Read it again.", reason="FILE_CHANGED")
        return await off_loop(lambda _: _answer(args, entry))


async def _look(args: ReadFileArgs, ctx: ToolContext) -> Entry | Refusal:
    entry = await with_view(ctx, [args.path], lambda root, look: look(args.path))
    if isinstance(entry, Refusal):
        return entry
    if entry.kind == "missing":
        return Refusal("not_found", f"{args.path} is not there. Look with list_files.", args.path)
    if entry.kind == "directory":
        return Refusal("not_a_file", f"{args.path} is a directory. Use list_files.", args.path)
    if entry.data is None or entry.kind != "file":
        return Refusal("not_a_file", f"{args.path} is no regular file and is not read.", args.path)
    if len(entry.data) > FILE_MAX:
        return Refusal("too_large", f"{args.path} is larger than {FILE_MAX >> 20} MiB. Use search.", args.path)
    return entry


def _answer(args: ReadFileArgs, entry: Entry) -> Outcome:
    text = read_text(entry.data or b"")
    if isinstance(text, Refusal):
        return conflicts.failed(text.at(args.path))
    lines = split_lines(text.text)
    first = args.offset or 1
    if first > max(1, len(lines.bodies)):
        return Outcome("error", f"{entry.path} has only {len(lines.bodies)} lines.", reason="not_found")
    wanted = lines.bodies[first - 1 : first - 1 + min(args.limit or LINES_MAX, LINES_MAX)]
    body, taken, cut = _fit(wanted)
    last = first - 1 + taken
    rest = f" Continue with offset {last + 1}." if last < len(lines.bodies) else ""
    notes = [
        "unsaved text in the editor" if entry.buffer is not None else "",
        "two editors have different unsaved text; this is the newest" if entry.buffer and entry.buffer.disputed else "",
        "" if text.utf8 else "not UTF-8: other bytes are shown as \ufffd, only ASCII lines can be changed",
        "CRLF line endings" if "\r\n" in lines.endings else "",
        "no newline at the end" if lines.endings and not lines.endings[-1] else "",
        "long lines are cut" if cut else "",
    ]
    facts = "; ".join(filter(None, (f"version {entry.version}", *notes)))
    head = f"[{entry.path}: lines {first if taken else 0}-{last} of {len(lines.bodies)}; {facts}]{rest}"
    whole = first == 1 and last == len(lines.bodies) and not cut and text.utf8
    seen = seen_file(entry.path, entry.data, entry.version, whole=whole)
    blobs = {seen.blob: entry.data} if seen.blob is not None and entry.data is not None else {}
    return Outcome("ok", f"{head}\n{body}", seen=(seen,), blobs=blobs)


def _fit(lines: Sequence[str]) -> tuple[str, int, bool]:
    """As many whole lines as fit, their number, and whether one of them was cut."""
    out: list[str] = []
    size, cut = 0, False
    for line in lines:
        piece = shown(line[:LINE_MAX])
        size += len(piece) + 1
        if out and size > CHARS_MAX:
            break
        cut = cut or len(line) > LINE_MAX
        out.append(piece)
    return "\n".join(out) + ("\n" if out else ""), len(out), cut
