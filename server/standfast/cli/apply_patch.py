"""`standfast apply-patch`: the patch engine from a shell; needs no daemon and starts none (design.md "Command line").

JSON: {outcome: "applied"|"conflict"|"error", files: [{path, kind, from?}],
       conflict?: {path, hunkIndex, reason, message, candidateLines?, line?, hunks?}, error?: {reason, path?, message}}.
Nobody can be asked here, so the editor settings of POLICY 8 are refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from standfast.clock import RandomIds
from standfast.errors import StandfastError
from standfast.files import protected
from standfast.files.entry import Entry, FileChange
from standfast.files.intents import intent_of, names_of
from standfast.files.patch_parse import parse_patch
from standfast.files.patch_plan import plan_patch
from standfast.files.paths import Root
from standfast.files.refusal import Refusal, refuse
from standfast.files.transaction import step_of
from standfast.files.turn import put_in_place

APPLIED, CONFLICT, ERROR = 0, 1, 2
"""Exit codes."""


def run(workspace: Path, patch: str) -> tuple[int, dict[str, Any]]:
    """Apply a patch to a workspace, all or nothing. Returns the exit code and the JSON object; raises nothing foreseen."""
    try:
        result = _apply(workspace.absolute(), patch)
    except StandfastError as error:
        return ERROR, {"outcome": "error", "files": [], "error": {"reason": error.reason, "message": error.message}}
    if isinstance(result, Refusal):
        return _refused(result)
    return APPLIED, {"outcome": "applied", "files": [_file(change) for change in result]}


def _apply(workspace: Path, patch: str) -> tuple[FileChange, ...] | Refusal:
    sections = parse_patch(patch)
    if isinstance(sections, Refusal):
        return sections
    with Root(workspace) as root:
        changes = plan_patch(sections, lambda asked, follow=True: _look(root, asked, follow=follow))
        if isinstance(changes, Refusal):
            return changes
        made = {change.path: root.missing_directories(change.path) for change in changes}
    call = RandomIds().new("call")
    after = {change.path: change.after for change in changes}
    intents = [
        intent_of(change, number, call, uri=(workspace / change.path).as_uri(), from_uri=None, made=made[change.path])
        for number, change in enumerate(changes)
    ]
    steps = [step_of(name, after.get(name.path)) for intent in intents for name in names_of(intent)]
    refusal = asyncio.run(put_in_place(workspace, steps))
    return changes if refusal is None else refusal


def _look(root: Root, asked: str, *, follow: bool) -> Entry:
    """What stands at a path. Raises Refused: `protected_path` for editor settings, which need a person's permission."""
    entry = root.look(asked, follow=follow)
    if protected.is_editor_settings(entry.path):
        said = f"{asked} can change what the editor runs, and here nobody can be asked. Nothing was changed."
        raise refuse("protected_path", said, asked)
    return entry


def _file(change: FileChange) -> dict[str, Any]:
    moved = {"from": change.from_path} if change.from_path else {}
    return {"path": change.path, "kind": change.change, **moved}


def _refused(refusal: Refusal) -> tuple[int, dict[str, Any]]:
    if not refusal.is_conflict:
        place = {"path": refusal.path} if refusal.path is not None else {}
        error = {"reason": refusal.reason, **place, "message": refusal.message}
        return ERROR, {"outcome": "error", "files": [], "error": error}
    hunk = next((one for one in refusal.hunks if one.index == refusal.hunk_index), None)
    conflict: dict[str, Any] = {
        "path": refusal.path,
        "hunkIndex": refusal.hunk_index,
        "reason": refusal.reason,
        "message": refusal.message,
    }
    if hunk is not None:
        extra = {"line": hunk.line, "candidateLines": hunk.candidate_lines}
        conflict |= {key: value for key, value in extra.items() if value is not None}
        conflict["hunks"] = [one.model_dump(by_alias=True, exclude_none=True) for one in refusal.hunks]
    return CONFLICT, {"outcome": "conflict", "files": [], "conflict": conflict}


def main(argv: Sequence[str] | None = None) -> int:
    """The command: reads the patch from standard input, prints what came of it, returns the exit code."""
    parser = argparse.ArgumentParser("standfast apply-patch", description="Apply a patch envelope from standard input.")
    parser.add_argument("--workspace", type=Path, default=None, help="the folder to patch; default: this one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    patch = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    code, result = run(options.workspace or Path.cwd(), patch)
    if options.json:
        print(json.dumps(result, ensure_ascii=True))
    else:
        print("\n".join(_sentences(result)), file=sys.stdout if code == APPLIED else sys.stderr)
    return code


def _sentences(result: dict[str, Any]) -> list[str]:
    if result["outcome"] == "applied":
        return [f"{one['kind']}: {one['path']}" for one in result["files"]] or ["Nothing to change."]
    what = result.get("conflict") or result["error"]
    where = f"{what['path']}: " if what.get("path") else ""
    return [f"{result['outcome']} ({what['reason']}): {where}{what['message']}"]


if __name__ == "__main__":
    raise SystemExit(main())
