"""Open matters on a range → code actions that settle them (design.md "Editor surface"). Pure.

The items are looked up by place, so that they come whether or not the client sends its diagnostics back (d07). An action carries ids
only; the daemon looks up what they mean and checks again when it is chosen (ATK-46).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from standfast.editor.attention_view import LineEnd, diagnostic, unknown_text
from standfast.editor.fitting import call_actions, conflict_actions
from standfast.projections.attention import AttentionItem
from standfast.projections.rows import CallRow, RunRow
from standfast.session.views import ConflictView

KIND = types.CodeActionKind.QuickFix


@dataclass(frozen=True, slots=True)
class Matter:
    """An item and the facts that say what fits: the call, the conflict or the run it is about."""

    item: AttentionItem
    call: CallRow | None = None
    conflict: ConflictView | None = None
    run: RunRow | None = None


_CALL_TITLES: dict[str, str] = {
    "keep": "Keep {what} as it is now",
    "complete": "Complete the interrupted change of {what}",
    "undo": "Undo the interrupted change of {what}",
    "dismiss": "Dismiss",
    "verify": "Check {what} again",
    "stop": "Stop the command",
    "removeLock": "Remove the git lock that the interrupted command left",
}
_CONFLICT_TITLES: dict[str, str] = {
    "merge": "Apply merged: keep both changes",
    "applyAt": "Apply here: line {line}",
    "retry": "Let the agent read the file again and retry",
    "keep": "Keep the file as it is",
    "dismiss": "Dismiss",
}
_MISSING_TITLES: dict[str, str] = {
    **_CONFLICT_TITLES,
    "merge": "Write the file again, with the refused change",
    "keep": "Leave the file deleted",
}
"""Where the person deleted the file meanwhile."""


def wanted(only: Sequence[str] | None) -> bool:
    """Whether the client asks for quick fixes: no filter, or one that holds them."""
    return not only or any(kind == "" or kind == KIND or KIND.startswith(f"{kind}.") for kind in only)


def touched(items: Iterable[AttentionItem], place: types.Range) -> list[AttentionItem]:
    """The items on the lines of a range. A selection that ends at a line's start does not touch that line."""
    first, last = place.start.line, place.end.line
    if last > first and place.end.character == 0:
        last -= 1
    return [item for item in items if first <= max(0, item.line - 1) <= last]


def actions(matters: Sequence[Matter], line_end: LineEnd = unknown_text) -> list[types.CodeAction]:
    """What can be done, each (command, arguments) once. Only a clean merge is preferred: an editor's "auto fix" takes what is
    preferred, and no other choice is so plain that a person may be spared it (the first of two candidates least of all)."""
    found: list[types.CodeAction] = []
    seen: set[str] = set()
    for matter in matters:
        for title, command, argument in _of(matter):
            mark = f"{command} {sorted(argument.items())}"
            if mark not in seen:
                seen.add(mark)
                found.append(_action(matter, title, command, argument, line_end))
                deleted = matter.conflict is not None and matter.conflict.missing
                found[-1].is_preferred = (argument.get("action") == "merge" and not deleted) or None
    return found


def _of(matter: Matter) -> list[tuple[str, str, dict[str, Any]]]:
    """(title, command, argument) of all that fits a matter."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    if matter.call is not None:
        found += _of_call(matter.call)
    if matter.conflict is not None:
        found += _of_conflict(matter.conflict)
    if matter.run is not None and matter.run.status in ("interrupted", "failed"):
        found.append(("Resume the run", "standfast.run.resume", {"runId": matter.run.run_id}))
    if matter.item.trust is not None:
        folder, version = matter.item.trust
        command = "standfast.workspace.trust"
        anew: dict[str, Any] = {"workspaceUri": folder, "trusted": True, "version": version}
        found.append(("Trust the folder again, as it is now", command, anew))
        found.append(("Do not trust the folder any more", command, {"workspaceUri": folder, "trusted": False}))
    return found


def _of_call(call: CallRow) -> list[tuple[str, str, dict[str, Any]]]:
    if call.dismissed:
        return []
    what = _what(call)
    found: list[tuple[str, str, dict[str, Any]]] = [
        (
            _CALL_TITLES[action].format(what=what),
            "standfast.recovery.resolve",
            {"callId": call.call_id, "action": action},
        )
        for action in call_actions(call)
    ]
    if any(intent.get("kind") in ("file", "buffer") for intent in call.intents):
        found.append(("Show difference", "standfast.diff.show", {"callId": call.call_id}))
    return found


def _what(call: CallRow) -> str:
    """What a title calls the call's object."""
    if any(target.get("command") for target in call.targets):
        return "the command"
    return "the file" if len(call.targets) < 2 else f"all {len(call.targets)} files"


def _of_conflict(view: ConflictView) -> list[tuple[str, str, dict[str, Any]]]:
    found: list[tuple[str, str, dict[str, Any]]] = []
    titles = _MISSING_TITLES if view.missing else _CONFLICT_TITLES
    for action, line in conflict_actions(view):
        argument: dict[str, Any] = {"conflictId": view.row.conflict_id, "action": action}
        if line is not None:
            argument["line"] = line
            if view.version is not None:
                argument["version"] = view.version
        found.append((titles[action].format(line=line), "standfast.conflict.resolve", argument))
    if view.row.state == "open":
        found.append(("Show difference", "standfast.diff.show", {"conflictId": view.row.conflict_id}))
    return found


def _action(matter: Matter, title: str, command: str, argument: dict[str, Any], line_end: LineEnd) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=KIND,
        diagnostics=[diagnostic(matter.item, line_end)],
        command=types.Command(title=title, command=command, arguments=[argument]),
        data={"command": command, "argument": argument},
    )
