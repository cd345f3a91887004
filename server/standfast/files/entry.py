"""A path as it was found, and a change that is wanted of it: the values that all writing tools share. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from standfast.files.buffers import Buffer
from standfast.files.version import version_of


@dataclass(frozen=True)
class Entry:
    """What stands at a path. `path` is relative, resolved, free of links; `asked` is how it was named.

    `data`: a file's bytes, a link's target, or an unsaved buffer's text as UTF-8 (then `buffer` is set and is the truth).
    `mode` is the whole st_mode.
    """

    asked: str
    path: str
    kind: Literal["file", "missing", "directory", "link", "special"]
    data: bytes | None = None
    mode: int = 0
    inode: int = 0
    links: int = 1
    buffer: Buffer | None = None

    @property
    def exists(self) -> bool:
        return self.kind != "missing"

    @cached_property
    def version(self) -> str | None:
        """The content's version; None where there is no content."""
        return None if self.data is None else version_of(self.data)

    @property
    def is_read_only(self) -> bool:
        """Its owner may not write it. The bits count, not what the kernel would allow to root (POLICY 8)."""
        return self.kind == "file" and self.buffer is None and not self.mode & 0o200


@dataclass(frozen=True)
class FileChange:
    """One file's way from before to after. `before` of a move stands at its old place, `target` at the new one."""

    change: Literal["add", "update", "delete", "move"]
    before: Entry
    after: bytes | None
    target: Entry | None = None
    mode: int | None = None
    """Mode bits to give to an added file (undo of a delete); None: as the system likes."""

    @property
    def path(self) -> str:
        """Where the file is afterwards (or was, if deleted)."""
        return self.target.path if self.target is not None else self.before.path

    @property
    def from_path(self) -> str | None:
        return self.before.path if self.change == "move" else None

    @cached_property
    def after_version(self) -> str | None:
        return None if self.after is None else version_of(self.after)
