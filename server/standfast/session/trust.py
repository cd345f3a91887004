"""Trust in a folder's own files (issue G.1): bound to the very folder and to the content of what would act, so that a changed file,
or another folder in the same place, is a question anew. Nobody is trusted but by the person's word over `workspace/trust`.

What acts: notes and skills (they speak to the model), git's hooks, settings that make git start programs, and the files of the folder
that those settings name. What such a file starts in turn is not followed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from standfast.session.notes import NAMES, SKILL_FOLDERS, chain
from standfast.session.workspace import glance, to_path, to_uri
from standfast.shortage import let_through

BYTES_MAX = 1024 * 1024
"""Of one file that acts; of a longer one the length and the beginning count."""
FILES_MAX = 500
GIT_FILES = (".gitattributes", ".git/info/attributes")
_SECTION = re.compile(r"^\s*\[\s*(?:branch|remote|user)\b", re.IGNORECASE)
"""Parts of git's own settings that start nothing and change all the time."""
_SETTING = re.compile(r"^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)$")
_NAMES_TEXT = frozenset({"excludesfile", "template", "ignorerevsfile", "mailmap"})
"""Settings that name a file which starts nothing."""


class Trust(NamedTuple):
    """What a folder is worth now."""

    trusted: bool
    changed: tuple[str, ...] = ()
    """Why it is not any more, although the person trusted it: the relative paths of what changed or came newly."""


NEVER = Trust(trusted=False)
ITSELF = "the folder itself"


class Lapse(NamedTuple):
    """A trust that holds no more: what the person is asked about anew."""

    workspace_uri: str
    changed: tuple[tuple[str, str], ...]
    """(path relative to the folder, URI) of what changed or came newly; no URI where another folder is in its place."""
    version: str
    """Of all that would act now: an answer is for that (`workspace/trust`)."""


def judge(recorded: str | None, found: dict[str, str] | None) -> Trust:
    """Compare what was trusted with what is there. Pure. `recorded`: as `take` made it; None: never trusted."""
    if recorded is None or found is None:
        return NEVER
    try:
        before: dict[str, str] = json.loads(recorded)
    except ValueError:
        return Trust(trusted=False, changed=(ITSELF,))
    if before.pop("", None) != found.get(""):
        return Trust(trusted=False, changed=(ITSELF,))
    changed = sorted(path for path, content in found.items() if path and before.get(path) != content)
    return Trust(trusted=not changed, changed=tuple(changed))


def lapse(workspace_uri: str, recorded: str | None, found: dict[str, str] | None) -> Lapse | None:
    """What takes a trust away that the person gave; None where they gave none, or it holds. Pure."""
    changed = judge(recorded, found).changed
    folder = to_path(workspace_uri)
    named = [(name, "" if name == ITSELF else to_uri(Path(os.path.normpath(folder / name)))) for name in changed]
    return Lapse(workspace_uri, tuple(named), version_of(_words(found or {}))) if named else None


def version_of(taken: str) -> str:
    """A short name for what `take` gave."""
    return sha256(taken.encode("utf-8", "surrogateescape")).hexdigest()


async def take(folder: Path) -> str | None:
    """What is trusted when the person says so now; None without a folder."""
    found = await asyncio.to_thread(look, folder)
    return None if found is None else _words(found)


def look(folder: Path) -> dict[str, str] | None:
    """Relative path → hash of each file that would act, and under "" which folder it is. Blocking; None without a folder."""
    folder_is = glance(folder)
    if folder_is is None:
        return None
    found = {"": f"{folder_is.device}:{folder_is.inode}:{folder_is.birth_ns}"}
    for path in _acting(folder):
        content = _content(path)
        if content is not None:
            found[os.path.relpath(path, folder)] = sha256(content).hexdigest()
        if len(found) > FILES_MAX:
            break
    return found


def _words(found: dict[str, str]) -> str:
    return json.dumps(found, sort_keys=True)


def _acting(folder: Path) -> Iterator[Path]:
    """The most powerful first: beyond FILES_MAX nothing is looked at."""
    git = Path(folder_git) if (folder_git := _git(folder)) else folder / ".git"
    settings = (git / "config", git / "config.worktree")
    yield from settings
    yield from (path for path in sorted((git / "hooks").glob("*")) if path.suffix != ".sample")
    yield from (folder / name for name in GIT_FILES)
    for place in chain(folder):
        yield from (place / name for name in NAMES)
    for each in settings:
        yield from _named(each, folder)
    for beneath in SKILL_FOLDERS:
        yield from sorted((folder / beneath).glob("*/SKILL.md"))


def _named(settings: Path, folder: Path) -> Iterator[Path]:
    """The folder's own files that git's settings name: a directory of hooks, an included file, a filter's script."""
    root = os.path.realpath(folder)
    for line in (_content(settings) or b"").decode("utf-8", "surrogateescape").splitlines():
        found = _SETTING.match(line)
        if found is None or found[1].lower() in _NAMES_TEXT:
            continue
        words = re.split(r"[\s\"';&|()!]+", found[2])
        for path in (base / word for word in words if word and "\0" not in word for base in (folder, settings.parent)):
            if not os.path.realpath(path).startswith(f"{root}/"):
                continue
            if found[1].lower() == "hookspath":
                yield from sorted(path.glob("*"))
            elif path.is_file():
                yield path


def _git(folder: Path) -> str | None:
    found = glance(folder)
    return found.common_git if found else None


def _content(path: Path) -> bytes | None:
    """What a file says, as far as it acts; None where there is none. What is no plain file counts by what it is."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        let_through(error)  # else what cannot be read now would be as good as what is not there
        return os.fsencode(os.readlink(path)) if path.is_symlink() else None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return f"{found.st_mode}".encode()
    with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor
        data = file.read(BYTES_MAX) + (str(found.st_size).encode() if found.st_size > BYTES_MAX else b"")
    return _settings(data) if path.name.startswith("config") else data + (b"x" if found.st_mode & 0o111 else b"")


def _settings(data: bytes) -> bytes:
    """Git's settings without the sections that start nothing."""
    kept: list[str] = []
    skipping = False
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        if line.lstrip().startswith("["):
            skipping = bool(_SECTION.match(line))
        if not skipping:
            kept.append(line)
    return "\n".join(kept).encode("utf-8", "surrogateescape")
