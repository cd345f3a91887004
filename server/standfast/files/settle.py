"""Carry a torn file change to its end, or take it back: `complete` and `undo` after a crash (issue B.2; scenario c05).

Goes by what stands there now, so it can itself be cut and repeated. All or nothing: where a file holds neither side, no
name is touched, since neither end could be reached (R-RECOVER-19).
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from standfast.files import kernel
from standfast.files.intents import FileIntent, Name, names_of
from standfast.files.paths import Root
from standfast.files.refusal import Refusal
from standfast.files.transaction import Step, execute, step_back, step_of
from standfast.files.turn import off_loop, workspace_turn
from standfast.files.verify import FileVerdict, Observed, observe, sweep

Action = Literal["complete", "undo"]
ReadBlob = Callable[[str], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Settled:
    """How it stands after the action. `refusal`: why nothing was done at all. `restored`: paths where somebody's last-moment
    version was put back."""

    files: tuple[FileVerdict, ...]
    restored: tuple[str, ...] = ()
    refusal: Refusal | None = None


async def read_blobs(intents: Iterable[FileIntent], blob: ReadBlob) -> dict[str, bytes]:
    """The contents that the intents name, as far as they were kept."""
    ids = {one for intent in intents for one in (intent.before_blob, intent.after_blob) if one is not None}
    found = {one: await blob(one) for one in sorted(ids)}
    return {one: data for one, data in found.items() if data is not None}


async def look(folder: Path, intents: Sequence[FileIntent], blobs: Mapping[str, bytes]) -> tuple[FileVerdict, ...]:
    """Observe, and sweep the journalled names that a crash left (scenario b02)."""
    async with workspace_turn(folder) as root:
        return await off_loop(lambda _: _look(root, intents, blobs))


async def settle(folder: Path, action: Action, intents: Sequence[FileIntent], blobs: Mapping[str, bytes]) -> Settled:
    """Complete or undo the intents as one transaction; refused where a name holds neither side."""
    async with workspace_turn(folder) as root:
        return await off_loop(lambda stop: _settle(root, action, intents, blobs, stop))


def _look(root: Root, intents: Sequence[FileIntent], blobs: Mapping[str, bytes]) -> tuple[FileVerdict, ...]:
    files = tuple(observe(root, intent) for intent in intents)
    sweep(root, files, blobs)
    return files


def _settle(
    root: Root, action: Action, intents: Sequence[FileIntent], blobs: Mapping[str, bytes], stop: Callable[[], bool]
) -> Settled:
    files = _look(root, intents, blobs)
    stuck = [
        one.name.path for one in _names(files) if one.state == "other" and (action == "complete" or one.rescued is None)
    ]
    if stuck:
        return Settled(files, refusal=_neither(stuck))
    restored = [one.name.path for one in _names(files) if action == "undo" and _put_back(root, one)]
    files = _look(root, intents, blobs)
    wanted = [one for one in _names(files) if one.state == ("before" if action == "complete" else "after")]
    steps: list[Step] = []
    for one in wanted if action == "complete" else reversed(wanted):
        step = _step(action, one.name, blobs)
        if isinstance(step, Refusal):
            return Settled(files, tuple(restored), step)
        steps.append(step)
    refusal = execute(root, steps, stop)
    if action == "undo" and refusal is None:
        made = [path for intent in intents for name in names_of(intent) for path in name.made]
        root.remove_directories(dict.fromkeys(made))
    return Settled(_look(root, intents, blobs), tuple(restored), refusal)


def _neither(paths: Sequence[str]) -> Refusal:
    said = f"{' and '.join(paths)} {'holds' if len(paths) == 1 else 'hold'} neither what was there before nor what was to be written."
    return Refusal(
        "diverged",
        f"{said} Nothing was changed. Keep what is there, or put one of the two back and check again.",
        paths[0],
    )


def _names(files: Sequence[FileVerdict]) -> list[Observed]:
    return [one for file in files for one in file.names]


def _step(action: Action, name: Name, blobs: Mapping[str, bytes]) -> Step | Refusal:
    """The step that leads one name to the end wanted. Refused where the content for it was not kept."""
    side, blob = (name.after, name.after_blob) if action == "complete" else (name.before, name.before_blob)
    data = None if blob is None else blobs.get(blob)
    if side is not None and data is None:
        return Refusal(
            "no_pre_image", f"The content of {name.path} was too large to keep. Nothing was changed.", name.path
        )
    return step_of(name, data) if action == "complete" else step_back(name, data)


def _put_back(root: Root, one: Observed) -> bool:
    """Give somebody's last-moment version its name again; what we had put there goes under the journalled name."""
    if one.rescued is None:
        return False
    above, _, name = one.name.path.rpartition("/")
    temporary = one.rescued.path.rpartition("/")[2]
    with root.directory(above) as fd:
        if one.found.kind == "missing":
            kernel.rename_to_free(fd, temporary, name)
        elif not kernel.exchange(fd, temporary, name):
            return False
        os.fsync(fd)
    return True
