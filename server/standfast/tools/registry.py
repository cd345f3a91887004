"""The list of tools: what the model is offered, in the order in which it is told of them, and what only the harness uses.

A new tool is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Sequence

from standfast.process.launch import Commands
from standfast.tools.apply_patch import ApplyPatch
from standfast.tools.base import Tool
from standfast.tools.edit_file import EditFile
from standfast.tools.git_tool import GitTool
from standfast.tools.list_files import ListFiles
from standfast.tools.process_tool import ProcessTool
from standfast.tools.read_file import ReadFile
from standfast.tools.read_result import ReadResult
from standfast.tools.resolve_conflict import ResolveConflict
from standfast.tools.run_command import RunCommand
from standfast.tools.search import Search
from standfast.tools.undo import Undo
from standfast.tools.update_goal import UpdateGoal
from standfast.tools.update_plan import UpdatePlan
from standfast.tools.write_file import WriteFile


def offered(commands: Commands) -> Sequence[Tool]:
    """The model's tools. `commands`: the daemon's own set of living commands, which three of them share."""
    return (
        ReadFile(), ListFiles(), Search(), WriteFile(), EditFile(), ApplyPatch(),
        RunCommand(commands), ProcessTool(commands), GitTool(commands), UpdatePlan(), UpdateGoal(),
        ReadResult(),
    )  # fmt: skip


def internal() -> Sequence[Tool]:
    """Tools that carry out a person's decisions; the model is not told of them."""
    return (Undo(), ResolveConflict())
