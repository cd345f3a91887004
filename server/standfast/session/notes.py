"""What a trusted project tells agents: notes (`AGENTS.md`, `CLAUDE.md`) and skills (`SKILL.md`), read once a run (issue F.1).

From the repository's root down to the session's folder. Only plain files count: a link could lead anywhere. Sizes are capped, what
is cut is said. It all goes to the model as data; no setting of ours is ever read from it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from standfast.run.notes import Note, Notes, Skill, front_matter

NAMES = ("AGENTS.md", "CLAUDE.md")
SKILL_FOLDERS = (".agents/skills", ".claude/skills")
NOTE_BYTES_MAX = 16 * 1024
NOTES_BYTES_MAX = 32 * 1024
SKILLS_MAX = 50
LEVELS_MAX = 20
"""Folders between the repository's root and the session's folder that are looked at."""


def read_notes(folder: Path) -> Notes:
    """The notes and skills of a folder as they are now. Blocking; what cannot be read is passed over."""
    notes: list[Note] = []
    left = NOTES_BYTES_MAX
    for place in chain(folder):
        for name in NAMES:
            data = _plain_bytes(place / name, min(NOTE_BYTES_MAX, left) + 1)
            if data is None or any(data[: len(note.text)] == note.text.encode() for note in notes):
                continue
            kept = data[: min(NOTE_BYTES_MAX, left)]
            left -= len(kept)
            text = kept.decode("utf-8", errors="ignore")
            notes.append(Note(os.path.relpath(place / name, folder), text, cut=len(data) > len(kept)))
    return Notes(tuple(notes), tuple(_skills(folder)))


def chain(folder: Path) -> list[Path]:
    """The folders from the repository's root down to this one; only itself where there is no repository around it."""
    above = [folder, *folder.parents][:LEVELS_MAX]
    for at, place in enumerate(above):
        if (place / ".git").exists():
            return above[at::-1]
    return [folder]


def _skills(folder: Path) -> Iterator[Skill]:
    found = 0
    for beneath in SKILL_FOLDERS:
        try:
            names = sorted(each.name for each in (folder / beneath).iterdir())
        except OSError:
            continue
        for name in names:
            path = f"{beneath}/{name}/SKILL.md"
            data = _plain_bytes(folder / path, NOTE_BYTES_MAX)
            if data is None or found == SKILLS_MAX:
                continue
            told = front_matter(data.decode("utf-8", errors="replace"))
            found += 1
            yield Skill(told.get("name", name), told.get("description", ""), path)


def _plain_bytes(path: Path, size: int) -> bytes | None:
    """The beginning of a file that is no link and no device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(number, size) if stat.S_ISREG(os.fstat(number).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(number)
