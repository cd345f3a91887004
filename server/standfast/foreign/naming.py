"""Other agents' tools in our words: so that our model can go on with a history as if the calls had been its own. Pure.

A tool without a counterpart keeps its name; the context tells such a call in words (`run/context.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from standfast.events.types import PlanStep
from standfast.foreign.fields import parts, text

Args = Mapping[str, Any]


def translated(name: str, args: Args, folder: str) -> tuple[str, dict[str, Any]]:
    """(tool, args) in our words; paths beneath the session's folder become relative."""
    found = _TOOLS.get(name.lower())
    if found is None:
        return name, dict(args)
    tool, made = found[0], found[1](args)
    path = made.get("path")
    if isinstance(path, str):
        made["path"] = relative(path, folder)
    return tool, {key: value for key, value in made.items() if value is not None}


def relative(path: str, folder: str) -> str:
    """A path as our tools have it: relative to the folder where it lies beneath it."""
    if not folder:
        return path
    return "." if path == folder else path.removeprefix(folder.rstrip("/") + "/")


def _command(args: Args) -> dict[str, Any]:
    command = args.get("command", args.get("cmd", ""))
    if isinstance(command, list):
        words = [str(word) for word in command]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        shell = len(words) == 3 and words[1] in ("-c", "-lc")
        command = words[2] if shell else shlex.join(words)
    return {"command": str(command), "cwd": text(args, "workdir") or text(args, "cwd") or None}


def _read(args: Args) -> dict[str, Any]:
    return {"path": _path(args), "offset": args.get("offset"), "limit": args.get("limit")}


def _write(args: Args) -> dict[str, Any]:
    return {"path": _path(args), "content": text(args, "content")}


def _edit(args: Args) -> dict[str, Any]:
    old = text(args, "old_string") or text(args, "oldText") or text(args, "old_text")
    new = text(args, "new_string") or text(args, "newText") or text(args, "new_text")
    return {"path": _path(args), "old_text": old, "new_text": new, "replace_all": args.get("replace_all") or None}


def _patch(args: Args) -> dict[str, Any]:
    return {"patch": text(args, "input") or text(args, "patch")}


def _list(args: Args) -> dict[str, Any]:
    return {"path": text(args, "path") or None, "glob": text(args, "pattern") or text(args, "glob") or None}


def _search(args: Args) -> dict[str, Any]:
    return {"pattern": text(args, "pattern"), "path": text(args, "path") or None, "glob": text(args, "glob") or None}


def _plan(args: Args) -> dict[str, Any]:
    return {"goal": text(args, "explanation"), "steps": [step.model_dump() for step in plan_steps(args)]}


def _path(args: Args) -> str:
    return text(args, "file_path") or text(args, "path")


def plan_steps(args: Args) -> list[PlanStep]:
    """The steps of Codex' `update_plan {plan: [{step, status}]}` or Claude Code's `TodoWrite {todos: [{content, status}]}`."""
    found: list[PlanStep] = []
    for step in parts(args, "plan") or parts(args, "todos"):
        status = text(step, "status")
        words = text(step, "step") or text(step, "content")
        if words and (status == "pending" or status == "in_progress" or status == "completed"):
            found.append(PlanStep(text=words, status=status))
    return found


_TOOLS: dict[str, tuple[str, Callable[[Args], dict[str, Any]]]] = {
    "exec_command": ("run_command", _command),
    "shell": ("run_command", _command),
    "shell_command": ("run_command", _command),
    "local_shell": ("run_command", _command),
    "bash": ("run_command", _command),
    "read": ("read_file", _read),
    "write": ("write_file", _write),
    "edit": ("edit_file", _edit),
    "apply_patch": ("apply_patch", _patch),
    "glob": ("list_files", _list),
    "ls": ("list_files", _list),
    "find": ("list_files", _list),
    "grep": ("search", _search),
    "update_plan": ("update_plan", _plan),
    "todowrite": ("update_plan", _plan),
}
