"""Searching the workspace's text by a regular expression, bounded in time and size.

Python's `re` can run away, and holds the interpreter while it does. So only a plain expression is searched for in a thread;
any other in a process of its own, which is ended when its time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from standfast.files import protected
from standfast.files.listing import Walk
from standfast.files.paths import Root
from standfast.files.refusal import Refusal, Refused, refuse
from standfast.files.text import read_text, shown
from standfast.files.turn import off_loop

MATCHES_MAX = 300
FILE_MAX = 4 << 20
"""Bytes of a file that is searched; larger ones are counted as left out."""
LINE_MAX = 2_000
"""Characters of a line that are looked at."""
LINE_SHOWN = 300
SECONDS_MAX = 20.0
CUT = "(The search took too long and was cut; narrow it by path or glob, or use a plainer pattern.)"


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: an expression, beneath a directory (any form that `Root.resolve` takes), in files that match."""

    pattern: str
    path: str | None = None
    glob: str | None = None


async def search(folder: Path, query: Query) -> str | Refusal:
    """Lines `path:number: text` and what was left out. Refused: `malformed`, `not_found` and those of `Root.resolve`."""
    if is_plain(query.pattern):
        return await off_loop(lambda stop: _search(folder, query))
    return await _search_apart(folder, query)


def is_plain(pattern: str) -> bool:
    """Whether an expression cannot run away: no group is repeated and there is at most one repetition. Pure."""
    bare = re.sub(r"\\.", "x", pattern)
    repeated = sum(bare.count(sign) for sign in "*+{")
    return repeated == 0 or (repeated == 1 and "(" not in bare)


def matching(glob: str | None) -> GitIgnoreSpec | None:
    """A glob as git reads it; None: everything. Raises Refused (`malformed`)."""
    if glob is None or not glob.strip():
        return None
    try:
        return GitIgnoreSpec.from_lines([glob])
    except ValueError as error:
        raise refuse("malformed", f"The glob {glob} cannot be read ({error}).") from error


def directory_of(root: Root, path: str | None) -> str:
    """A directory's resolved path. Raises Refused (`not_found`, `not_a_directory`, and those of `Root.resolve`)."""
    resolved = root.resolve((path or ".").rstrip("/") or "/")
    entry = root.at(path or ".", resolved, bytes_max=0) if resolved else None
    if entry is not None and entry.kind == "missing":
        raise refuse("not_found", f"{path} is not there.", path)
    if entry is not None and entry.kind != "directory":
        raise refuse("not_a_directory", f"{path} is no directory.", path)
    return resolved


def _search(folder: Path, query: Query) -> str | Refusal:
    end = time.monotonic() + SECONDS_MAX
    lines: list[str] = []
    left_out = 0
    try:
        expression = re.compile(query.pattern)
        with Root(folder) as root:
            spec, walk = matching(query.glob), Walk(root)
            for found in walk.below(directory_of(root, query.path)):
                if found.kind != "file" or (spec is not None and not spec.match_file(found.path)):
                    continue
                if time.monotonic() > end or len(lines) > MATCHES_MAX:
                    break
                try:
                    lines += _matches(root, found.path, expression, end)
                except Refused:
                    left_out += 1
    except re.error as error:
        return Refusal("malformed", f"The pattern cannot be read: {error}.")
    except Refused as refused:
        return refused.refusal
    return _answer(lines, left_out, is_cut=time.monotonic() > end)


def _matches(root: Root, path: str, expression: re.Pattern[str], end: float) -> Iterator[str]:
    """Raises Refused for a file that is not searched."""
    if protected.is_secret(path):
        raise refuse("secret", "It may hold keys.", path)
    entry = root.at(path, path, bytes_max=FILE_MAX)
    text = read_text(entry.data) if entry.kind == "file" and entry.data is not None else None
    if text is None:
        return
    if isinstance(text, Refusal):
        raise Refused(text)
    for number, line in enumerate(text.text.split("\n"), 1):
        if time.monotonic() > end:
            return
        if expression.search(line[:LINE_MAX].removesuffix("\r")):
            yield f"{shown(path)}:{number}: {shown(line[:LINE_SHOWN]).rstrip()}"


def _answer(lines: list[str], left_out: int, *, is_cut: bool) -> str:
    said = [f"({left_out} files are too large, secret or no text and were not searched.)"] if left_out else []
    if is_cut:
        said.append(CUT)
    if len(lines) > MATCHES_MAX:
        said.append(f"(There are more than {MATCHES_MAX} matches; narrow the search.)")
    return "\n".join((*(lines[:MATCHES_MAX] or ["No line matches."]), *said))


# -- in a process of its own ------------------------------------------------------------------------------------------


async def _search_apart(folder: Path, query: Query) -> str | Refusal:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "standfast.files.searching"),
        env={},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    order = json.dumps({"folder": str(folder), "query": asdict(query)}).encode()
    try:
        answer, _ = await asyncio.wait_for(process.communicate(order), SECONDS_MAX)
    except TimeoutError:
        return CUT
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        return Refusal("io_error", "The search failed. Use a plainer pattern.")
    said = json.loads(answer)
    return said["text"] if "text" in said else Refusal(said["reason"], said["message"])


def main() -> None:
    """One query from standard input, its answer to standard output."""
    order = json.load(sys.stdin)
    result = _search(Path(order["folder"]), Query(**order["query"]))
    said = {"reason": result.reason, "message": result.message} if isinstance(result, Refusal) else {"text": result}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
