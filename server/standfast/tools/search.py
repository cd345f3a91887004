"""search: lines that match a regular expression, in the files that list_files shows. Bounded in time and size."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

from standfast.files.refusal import Refusal
from standfast.files.searching import MATCHES_MAX, Query, search
from standfast.tools import conflicts
from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.reading import ReadsFiles


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
        answer = await search(ctx.workspace, Query(args.pattern, args.path, args.glob))
        return conflicts.failed(answer) if isinstance(answer, Refusal) else Outcome("ok", answer)
