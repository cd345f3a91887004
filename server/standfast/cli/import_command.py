"""`standfast import`: our own exports and other agents' sessions, one by one or a folder of them (R3.4, R3.6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from standfast.cli import output
from standfast.cli.client import Json, RequestFailed
from standfast.cli.door import Door
from standfast.cli.talk import talk


async def import_(door: Door, paths: list[Path], *, force: bool, as_json: bool) -> int:
    """Each path is an exported folder, another agent's session file, or a folder of such files (all beneath it).

    A path that was named and cannot be taken in ends the command; files found in a folder are gone on behind, and counted.
    Interrupting it leaves what was taken in so far, and nothing half.
    """
    found = await asyncio.to_thread(lambda: [each for path in paths for each in sources(path)])
    failed = 0
    async with talk(door) as client:
        client.listen(_show_progress)
        for number, (path, named) in enumerate(found, start=1):
            if len(found) > 1 and not as_json:
                output.err.print(f"{number} of {len(found)}: {path.name}", markup=False)
            params: Json = {"uri": path.as_uri(), **({"force": True} if force else {})}
            if output.err.is_terminal and not as_json:
                params["workDoneToken"] = number
            try:
                session = (await client.request("standfast/session/import", params))["session"]
            except RequestFailed as error:
                if named:
                    raise
                failed += 1
                output.err.print(error.message, markup=False)
                continue
            if as_json:
                output.print_json({"sessionId": session["sessionId"]})
            else:
                output.out.print(f"{path.name} is session {session['sessionId']}.", markup=False)
    if failed:
        output.err.print(f"{failed} of {len(found)} files were not taken in.", markup=False)
    return output.FAILED if failed else output.DONE


def _show_progress(method: str, params: Json) -> None:
    """How far a big file is, in one line of the terminal that is written over."""
    if method == "$/progress":
        said = params["value"].get("message", "")
        output.err.print(f"\r{said:<30}\r", end="", markup=False)


def sources(path: Path) -> list[tuple[Path, bool]]:
    """What a path of `import` means: (what to take in, whether the person named that very thing)."""
    if not path.is_dir() or (path / "events.jsonl").exists():
        return [(path, True)]
    beneath = sorted(each for kind in ("*.jsonl", "*.jsonl.zst") for each in path.rglob(kind) if each.is_file())
    exported = {each.parent for each in beneath if each.name == "events.jsonl"}
    files = [each for each in beneath if each.parent not in exported and each.name not in INDEXES]
    return [(each, False) for each in [*sorted(exported), *files]] or [(path, True)]


INDEXES = frozenset({"session_index.jsonl", "history.jsonl"})
"""Files of other agents that lie beside their sessions and are none."""
