"""A stand-in for the daemon, to be killed: plans one call, says that its intents are stored, runs it, says its outcome.

python stand_in.py BASE TOOL ARGS-JSON GRACE_MS MARK        (LEVEL in the environment: confined by that level)
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import cast

from standfast.files.buffers import NoBuffers
from standfast.process import sandbox
from standfast.process.launch import Commands
from standfast.tools.base import Outcome, Tool, ToolContext
from standfast.tools.git_tool import GitTool
from standfast.tools.run_command import RunCommand


async def main(base: Path, tool_name: str, args: dict[str, object], grace_ms: int, mark: str) -> None:
    found = sandbox.UNCONFINED
    if level := os.environ.get("LEVEL"):
        found = sandbox.detect(sandbox.expose(os.environ["HOME"], own=[]), best=cast(sandbox.Level, level))
    commands = Commands(grace_ms=grace_ms, sandbox=found)
    tools: dict[str, Tool] = {"run_command": RunCommand(commands), "git": GitTool(commands)}
    tool = tools[tool_name]
    ctx = ToolContext(
        workspace=base / "workspace",
        spool=base / "spool",
        session_id="ses_1",
        call_id="call_1",
        operation_id=mark,
        buffers=NoBuffers(),
    )
    wanted = tool.Args.model_validate(args)
    plan = await tool.plan(wanted, ctx)
    if isinstance(plan, Outcome):
        raise SystemExit(plan.content)
    sys.stdout.write(json.dumps([intent.model_dump(by_alias=True) for intent in plan.intents]) + "\n")
    sys.stdout.flush()
    outcome = await tool.run(wanted, plan, ctx)
    sys.stdout.write(json.dumps({"status": outcome.status, "exitCode": outcome.exit_code}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
