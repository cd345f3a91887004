"""What a run does now, in a few words for a status bar. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DOING: Mapping[str, tuple[str, str]] = {
    "apply_patch": ("applying a patch", ""),
    "edit_file": ("editing", "path"),
    "git": ("git", "action"),
    "list_files": ("looking for files", "glob"),
    "process": ("a background command:", "action"),
    "read_file": ("reading", "path"),
    "read_result": ("looking at an earlier result", ""),
    "resolve_conflict": ("settling a conflict", ""),
    "run_command": ("running", "command"),
    "search": ("searching for", "pattern"),
    "undo": ("taking a change back", ""),
    "update_goal": ("minding the goal", ""),
    "update_plan": ("minding the plan", ""),
    "write_file": ("writing", "path"),
}
"""Tool → (words, the argument that follows them)."""
SAID_MAX = 60
"""Characters of the argument; its first line only."""


def doing(tool: str, args: Mapping[str, Any]) -> str:
    """E.g. `editing src/a.py`; a tool that is not known is named as it is. `args` are the model's, and may be anything."""
    words, key = _DOING.get(tool, (tool, ""))
    said = args.get(key)
    line = said.strip().partition("\n")[0] if isinstance(said, str) else ""
    short = line if len(line) <= SAID_MAX else f"{line[: SAID_MAX - 1]}…"
    return f"{words} {short}".rstrip(" :")
