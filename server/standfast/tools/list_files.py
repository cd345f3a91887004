"""list_files: what is in the workspace, as git would see it (ignore files respected, nothing outside)."""

from __future__ import annotations

from itertools import islice

from pathspec import GitIgnoreSpec
from pydantic import BaseModel, ConfigDict, Field

from standfast.files.listing import Found, Walk
from standfast.files.paths import Root
from standfast.files.refusal import Refusal
from standfast.files.searching import directory_of, matching
from standfast.files.text import shown
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.edits import with_view
from standfast.tools.reading import ReadsFiles

SHOWN_MAX = 1_000


class ListFilesArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str | None = Field(None, description="A directory; default: the workspace's root.")
    glob: str | None = Field(
        None, description="Only paths that match, as in a .gitignore, e.g. '*.py' or 'src/**/test_*'."
    )


class ListFiles(ReadsFiles):
    name = "list_files"
    description = f"List the files of a directory and below, without those git ignores. At most {SHOWN_MAX} at once."
    effect: Effect = "read"
    Args = ListFilesArgs

    async def plan(self, args: ListFilesArgs, ctx: ToolContext) -> Plan | Outcome:
        where = args.path or "."
        return Plan("read", f"List {where}", digest=f"list:{where}:{args.glob}")

    async def run(self, args: ListFilesArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        answer = await with_view(ctx, [], lambda root, look: _list(root, args))
        return conflicts.failed(answer) if isinstance(answer, Refusal) else Outcome("ok", answer)


def _list(root: Root, args: ListFilesArgs) -> str:
    spec = matching(args.glob)
    walk = Walk(root)
    found = (one for one in walk.below(directory_of(root, args.path)) if _is_wanted(one, spec))
    lines = [shown(one.path + ("/" if one.kind == "directory" else "")) for one in islice(found, SHOWN_MAX + 1)]
    if not lines:
        return "Nothing is there that git does not ignore."
    if len(lines) > SHOWN_MAX or walk.cut:
        return "\n".join((*lines[:SHOWN_MAX], "… there are more; ask for a directory or with a glob."))
    return "\n".join(lines)


def _is_wanted(one: Found, spec: GitIgnoreSpec | None) -> bool:
    """Without a glob directories are listed, too, so that empty ones are seen."""
    return True if spec is None else one.kind != "directory" and spec.match_file(one.path)
