"""Events as one line each, for people. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text

from standfast.cli.output import plain

Json = dict[str, Any]
WIDTH = 96

VERDICT_STYLE = {
    "applied": "green", "finished": "green", "not_applied": "cyan", "partial": "yellow",
    "diverged": "yellow", "running": "blue", "unknown": "red", "uncertain": "magenta",
}  # fmt: skip


def describe(event: Json) -> Text:
    """One line: what happened."""
    tell = _TELL.get(event["type"])
    rest = tell(event) if tell else ""
    return Text.assemble((event["type"].replace("_", " "), "bold"), "  ", Text(_line(rest)))


def call_words(tool: str, args: Json) -> str:
    """A tool call as a person would say it: the tool and what it acts on."""
    what = args.get("command") or args.get("path") or args.get("pattern") or args.get("action")
    if what is None and "patch" in args:
        files = [
            line.split(": ", 1)[1]
            for line in str(args["patch"]).splitlines()
            if line.startswith("*** ") and ": " in line
        ]
        what = ", ".join(files)
    return f"{tool} {what}" if what else tool


def _line(text: str) -> str:
    flat = plain(" ".join(str(text).split()))
    return flat if len(flat) <= WIDTH else flat[: WIDTH - 1] + "…"


def _said(event: Json) -> str:
    return " ".join(part.get("text", "") for part in event.get("content", []))


def _reply(event: Json) -> str:
    return " ".join(block["text"] for block in event.get("blocks", []) if block.get("type") == "text")


def _targets(event: Json) -> str:
    found = [
        f"{target.get('command') or str(target.get('uri')).rsplit('/', 1)[-1]}: {target['verdict']}"
        for target in event.get("targets", [])
    ]
    return f"{event['status']}  {', '.join(found)}"


def _finished(event: Json) -> str:
    error = event.get("error")
    return event["status"] + (f": {error['message']}" if error else "")


_TELL: dict[str, Callable[[Json], str]] = {
    "user_message": _said,
    "message_queued": _said,
    "assistant_chunk": lambda event: event["text"],
    "assistant_message": _reply,
    "model_request": lambda event: f"attempt {event['attempt']} {event['model']}",
    "model_error": lambda event: f"{event['reason']} {event.get('message', '')}",
    "tool_call": lambda event: call_words(event["tool"], event["args"]),
    "tool_output": lambda event: event["text"],
    "tool_result": lambda event: f"{event['status']}  {event['content']}",
    "tool_recovery": _targets,
    "recovery_resolved": lambda event: f"{event['action']} → {event['verdict']}",
    "permission_requested": lambda event: event["summary"],
    "permission_resolved": lambda event: f"{event['decision']} by {event['by']}",
    "run_started": lambda event: event["trigger"],
    "run_finished": _finished,
    "conflict_raised": lambda event: f"{event['reason']} {event['uri']}",
    "conflict_resolved": lambda event: event["action"],
}
