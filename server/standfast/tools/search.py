"""search: lines that match a regular expression, in the files that list_files shows. Bounded in time and size."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from pydantic import BaseModel, ConfigDict, Field

from standfast.files import protected
from standfast.files.listing import Walk
from standfast.files.paths import Root
from standfast.files.refusal import Refusal, Refused, refuse
from standfast.files.text import read_text, shown
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.edits import with_view
from standfast.tools.list_files import directory_of, matching
from standfast.tools.reading import ReadsFiles

MATCHES_MAX = 300
FILE_MAX = 4 << 20
"""Bytes of a file that is searched; larger ones are named as left out."""
LINE_MAX = 2_000
"""Characters of a line that are looked at: no expression can run away on so few."""
LINE_SHOWN = 300
SECONDS_MAX = 20.0


class SearchArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    pattern: str = Field(description="A regular expression (Python), matched line by line.")
    path: str | None = Field(None, description="A directory; default: the workspace's root.")
    glob: str | None = Field(None, description="Only files that match, as in a .gitignore.")


class Search(ReadsFiles):
    name = "search"
    description = f"Search text files for a regular expression; answers 'path:line: text', at most {MATCHES_MAX} lines."
    effect: Effect = "read"
    Args = SearchArgs

    async def plan(self, args: SearchArgs, ctx: ToolContext) -> Plan | Outcome:
        try:
            re.compile(args.pattern)
        except re.error as error:
            return Outcome("error", f"The pattern cannot be read: {error}.", reason="malformed")
        return Plan("read", f"Search for {args.pattern}", digest=f"search:{args.pattern}:{args.path}:{args.glob}")

    async def run(self, args: SearchArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        answer = await with_view(ctx, [], lambda root, look: _search(root, args, time.monotonic))
        return conflicts.failed(answer) if isinstance(answer, Refusal) else Outcome("ok", answer)


def _search(root: Root, args: SearchArgs, now: Callable[[], float]) -> str:
    end = now() + SECONDS_MAX
    spec, walk = matching(args.glob), Walk(root)
    expression = re.compile(args.pattern)
    lines: list[str] = []
    left_out = 0
    for found in walk.below(_start(root, args.path)):
        if found.kind != "file" or (spec is not None and not spec.match_file(found.path)):
            continue
        if now() > end or len(lines) > MATCHES_MAX:
            break
        try:
            lines += _matches(root, found.path, expression, end, now)
        except Refused:
            left_out += 1
    said = [] if not left_out else [f"({left_out} files are too large, secret or no text and were not searched.)"]
    if now() > end:
        said.append("(The search took too long and was cut; narrow it by path or glob.)")
    if len(lines) > MATCHES_MAX:
        said.append(f"(There are more than {MATCHES_MAX} matches; narrow the search.)")
    return "\n".join((*(lines[:MATCHES_MAX] or ["No line matches."]), *said))


def _start(root: Root, path: str | None) -> str:
    return directory_of(root, path)


def _matches(root: Root, path: str, expression: re.Pattern[str], end: float, now: Callable[[], float]) -> Iterator[str]:
    """Raises Refused for a file that is not searched."""
    if protected.is_secret(path):
        raise refuse("secret", "It may hold keys.", path)
    entry = root.at(path, path, bytes_max=FILE_MAX)
    text = read_text(entry.data) if entry.kind == "file" and entry.data is not None else None
    if text is None:
        return
    if isinstance(text, Refusal):
        raise Refused(text)
    for number, line in enumerate(text.text.split("\n"), 1):
        if now() > end:
            return
        if expression.search(line[:LINE_MAX].removesuffix("\r")):
            yield f"{shown(path)}:{number}: {shown(line[:LINE_SHOWN]).rstrip()}"
