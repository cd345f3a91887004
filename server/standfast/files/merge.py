"""Three-way merge by git's own merge of files, which needs no repository and sees none (R11.4, design.md "Files").

It runs in an empty temporary directory with an empty environment: no configuration, attributes or drivers of anybody's.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path

NAMES = ("current", "base", "proposed")
TIMEOUT_S = 20.0
MERGE_MAX = 8 * 1024 * 1024
"""Bytes of one side; above it no merge is offered."""


async def merge(base: bytes, current: bytes, proposed: bytes) -> bytes | None:
    """`current` with what leads from `base` to `proposed`. None: it does not merge cleanly, or cannot be tried here."""
    if current in (base, proposed):
        return proposed
    if proposed == base:
        return current
    sides = (current, base, proposed)
    if max(map(len, sides)) > MERGE_MAX or any(b"\0" in side for side in sides):
        return None
    folder = Path(await asyncio.to_thread(_lay_out, sides))
    try:
        git = await asyncio.to_thread(shutil.which, "git")
        return None if git is None else await _run(git, folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _lay_out(sides: tuple[bytes, ...]) -> str:
    """A private directory with the three sides in it."""
    folder = tempfile.mkdtemp(prefix="standfast-merge-")
    for name, data in zip(NAMES, sides, strict=True):
        (Path(folder) / name).write_bytes(data)
    return folder


async def _run(git: str, folder: Path) -> bytes | None:
    nothing = "/dev/null"
    environment = {
        "HOME": str(folder),
        "PATH": str(Path(git).parent),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": nothing,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    process = await asyncio.create_subprocess_exec(
        git,
        *("merge-file", "-p", "-q", *NAMES),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        merged, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return merged if process.returncode == 0 else None
