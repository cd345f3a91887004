"""Commands whose daemon is killed: what the tests of it share."""

from __future__ import annotations

from pathlib import Path

import psutil

from fake_api import Request, reply, tool
from fake_api.replies import Answer
from standfast.cli.client import Json
from support import Editor
from support.daemon import places
from support.waiting import until


def run_what_is_said(request: Request) -> Answer:
    """A model that runs a message that begins with `$ ` as a command, and `& ` in the background."""
    said = request.last_text
    if said.startswith(("$ ", "& ")):
        return reply(tools=[tool("run_command", command=said[2:], background=said.startswith("& "))])
    return reply("Done.")


def exits(home: Path) -> list[Path]:
    """The exit records that there are."""
    return list(places(home).commands.glob("*/exit.json"))


def processes_under(folder: Path) -> list[str]:
    """Living processes, other than this one, that work in a folder or were started with a path in it."""
    found: list[str] = []
    for process in psutil.process_iter(["pid", "cmdline", "cwd", "status"]):
        about = process.info
        words = [*(about["cmdline"] or ()), about["cwd"] or ""]
        if about["status"] != psutil.STATUS_ZOMBIE and any(str(folder) in word for word in words):
            found.append(f"{about['pid']}: {words}")
    return found


async def no_process_is_left(folder: Path) -> None:
    await until(lambda: not processes_under(folder), "no process to be left")


def call_of(attached: Json) -> Json:
    """The one call in the answer to `attach`."""
    [call] = attached["recovery"]["calls"]
    return call


async def settled(editor: Editor, session_id: str, call_id: str) -> Json:
    """Wait until the call's command has ended and its verdict says so; returns the `tool_result`."""

    async def known() -> Json | None:
        page = await editor.request("standfast/session/events", {"sessionId": session_id, "limit": 1000})
        return next((e for e in page["events"] if e["type"] == "tool_result" and e["callId"] == call_id), None)

    return await known() or await editor.event("tool_result", callId=call_id)
