"""read_result: what an earlier call was answered with, where the context tells it in one line by now (R1.4)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from standfast.tools.base import Effect, Outcome, Plan, ToolContext
from standfast.tools.reading import ReadsFiles

CHARS_MAX = 60_000
"""Characters that are shown at once."""


class ReadResultArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    call_id: str = Field(description="As the shortened result names it.")
    offset: int = Field(1, ge=1, description="First character, from 1.")


class ReadResult(ReadsFiles):
    """Reads the session's own log; nothing outside is looked at."""

    name = "read_result"
    description = (
        "Show the whole of an earlier result that was shortened since. It is as it was then: to know what a file holds now, "
        "use read_file."
    )
    effect: Effect = "read"
    Args = ReadResultArgs

    async def plan(self, args: ReadResultArgs, ctx: ToolContext) -> Plan | Outcome:
        if await ctx.result(args.call_id) is None:
            return Outcome("error", f"No call {args.call_id} of this session has a result.", reason="not_found")
        return Plan("read", "Read an earlier result", digest=f"result:{args.call_id}")

    async def run(self, args: ReadResultArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        text = await ctx.result(args.call_id) or ""
        shown = text[args.offset - 1 : args.offset - 1 + CHARS_MAX]
        last = args.offset - 1 + len(shown)
        rest = f" Continue with offset {last + 1}." if last < len(text) else ""
        return Outcome("ok", f"[characters {args.offset}-{last} of {len(text)}, as they were then]{rest}\n{shown}")
