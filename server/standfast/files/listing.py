"""The files of a workspace as git would see them: ignore files respected, links to directories not followed.

Walks by descriptors, so that a directory swapped for a link leads nowhere. Bounded; says when it was cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pathspec import GitIgnoreSpec

from standfast.files import protected
from standfast.files.paths import DIRECTORY, Root
from standfast.files.refusal import Refusal, Refused
from standfast.files.text import read_text

ENTRIES_MAX = 200_000
"""Names that are looked at before the walk stops."""
IGNORE_FILE_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A name in the workspace, relative to its root. Bytes that are no UTF-8 are surrogate escapes."""

    path: str
    kind: Literal["file", "directory", "link"]


@dataclass(slots=True)
class Walk:
    """A walk and what it has seen. `cut`: there was more than ENTRIES_MAX."""

    root: Root
    ignored_too: bool = False
    seen: int = 0
    cut: bool = False
    rules: list[tuple[str, GitIgnoreSpec]] = field(default_factory=list[tuple[str, GitIgnoreSpec]])

    def below(self, path: str = "") -> Iterator[Found]:
        """All names beneath a resolved directory, sorted, directories before what is in them. Raises Refused, OSError."""
        if not self.ignored_too:
            parts = path.split("/") if path else []
            for depth in range(len(parts)):
                self._read_rules("/".join(parts[:depth]))
        with self.root.directory(path) as fd:
            yield from self._directory(fd, path)

    def _directory(self, fd: int, path: str) -> Iterator[Found]:
        mark = len(self.rules)
        if not self.ignored_too:
            self._read_rules(path)
        with os.scandir(fd) as entries:
            children = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries
            )
        for name, is_directory, is_link in children:
            self.seen += 1
            if self.seen > ENTRIES_MAX:
                self.cut = True
                break
            here = f"{path}/{name}" if path else name
            if protected.is_git(name) or self._is_ignored(here, is_directory=is_directory):
                continue
            yield Found(here, "directory" if is_directory else "link" if is_link else "file")
            if is_directory:
                yield from self._inside(fd, name, here)
        del self.rules[mark:]

    def _inside(self, fd: int, name: str, here: str) -> Iterator[Found]:
        try:
            inner = os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:  # gone, closed to us, or a link by now: there is nothing to list
            return
        try:
            yield from self._directory(inner, here)
        finally:
            os.close(inner)

    def _read_rules(self, path: str) -> None:
        name = f"{path}/.gitignore" if path else ".gitignore"
        try:
            entry = self.root.at(name, name, bytes_max=IGNORE_FILE_MAX)
        except Refused:
            return
        text = read_text(entry.data) if entry.kind == "file" and entry.data is not None else None
        if text is not None and not isinstance(text, Refusal):
            self.rules.append((path + "/" if path else "", GitIgnoreSpec.from_lines(text.text.splitlines())))

    def _is_ignored(self, path: str, *, is_directory: bool) -> bool:
        """The innermost ignore file that says something decides, as in git."""
        for prefix, spec in reversed(self.rules):
            said = spec.check_file(path.removeprefix(prefix) + ("/" if is_directory else "")).include
            if said is not None:
                return said
        return False
