"""Paths beneath the workspace's root, without a race (design.md "Files"; POLICY 8; ATK-09, ATK-10, ATK-12, ATK-15).

A path is first resolved to one that is free of links, then every act opens its directory anew by that path without
following any link (`openat2` on Linux, a walk elsewhere) and works on the descriptor. Whatever is swapped in between can
make an act fail; it cannot make it happen elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Generator, Iterable
from pathlib import Path

from standfast.errors import WorkspaceError
from standfast.files import kernel, protected
from standfast.files.entry import Entry
from standfast.files.refusal import Refused, refuse
from standfast.shortage import let_through

LINKS_MAX = 40
PATH_MAX, NAME_MAX = 4000, 255
"""Bytes of a path and of a name; what is longer fails only when files are already being made."""
READ_MAX = 256 * 1024 * 1024
"""Bytes of one file that are ever held in memory."""
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
ROOTED = re.compile(r"[/\\]|~[\w.-]*(/|$)|[A-Za-z]:([/\\]|$)|[A-Za-z][A-Za-z0-9+.-]*://|file:", re.IGNORECASE)
"""Absolute, home, drive letter, network share, URI: none of them is relative to the workspace."""


def clean_path(asked: str) -> list[str]:
    """The parts of a relative path, normalised. Raises Refused: `outside_workspace`, `malformed`, `not_a_file`."""
    if any(ord(char) < 32 or ord(char) == 127 or 0xD800 <= ord(char) <= 0xDFFF for char in asked):
        raise refuse("malformed", "A path holds no control characters and no half characters.", asked)
    if ROOTED.match(asked):
        raise refuse(
            "outside_workspace", f"{asked} is not relative to the workspace. Name the file relative to its root.", asked
        )
    parts: list[str] = []
    for part in asked.split("/"):
        if part == ".." and not parts:
            raise refuse("outside_workspace", f"{asked} leads out of the workspace.", asked)
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if asked.endswith("/") and parts:
        raise refuse("not_a_file", f"{asked} names a directory.", asked)
    if len(asked.encode()) > PATH_MAX or any(len(part.encode()) > NAME_MAX for part in parts):
        raise refuse("malformed", "The path is longer than a file system takes.", asked)
    return parts


class Root:
    """An open workspace folder. Close it, or use it in `with`."""

    def __init__(self, folder: Path) -> None:
        """Raises WorkspaceError (`WorkspaceNotFound`)."""
        self.folder = folder
        try:
            self.fd = os.open(folder, DIRECTORY)
        except OSError as error:
            let_through(error)  # the folder may well be there
            raise WorkspaceError(
                "WorkspaceNotFound",
                f"The workspace {folder} cannot be opened ({error.strerror}). Nothing was changed.",
            ) from error

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.fd)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: two paths to one folder are one workspace."""
        found = os.fstat(self.fd)
        return found.st_dev, found.st_ino

    # -- resolving ----------------------------------------------------------------------------------------------------

    def resolve(self, asked: str, *, follow: bool = True) -> str:
        """The path, free of links and `..`, that `asked` means. `follow` false: a link at the very end stays.

        Raises Refused: `symlink_escape`, `protected_path`, `not_a_directory` and those of `clean_path`.
        """
        done: list[str] = []
        todo = deque(clean_path(asked))
        followed = 0
        while todo:
            part = todo.popleft()
            if part == "..":
                if not done:
                    raise self._escape(asked)
                done.pop()
                continue
            part = self._spelled(done, part)
            here = "/".join((*done, part))
            found = self._stat(here)
            self._refuse_git(asked, here, found)
            if found is not None and stat.S_ISLNK(found.st_mode) and (todo or follow):
                followed += 1
                if followed > LINKS_MAX:
                    raise refuse("symlink_escape", f"{asked} goes through too many links.", asked)
                target = self._link_target(asked, here)
                if target.startswith("/"):
                    done = []
                    target = self._within(asked, target)
                todo.extendleft(reversed([step for step in target.split("/") if step not in {"", "."}]))
                continue
            if todo and found is not None and not stat.S_ISDIR(found.st_mode):
                raise refuse("not_a_directory", f"{here} is no directory, so {asked} cannot be in it.", asked)
            done.append(part)
        return "/".join(done)

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return None
        except OSError as error:
            raise refuse("malformed", f"{path} cannot be looked at ({error.strerror}).", path) from error

    def _link_target(self, asked: str, here: str) -> str:
        try:
            return os.readlink(here, dir_fd=self.fd)
        except OSError as error:
            raise refuse("file_changed", f"{asked} changed while it was looked at.", asked) from error

    def _within(self, asked: str, target: str) -> str:
        """An absolute link's target, relative to the root; only one that stays inside."""
        root = os.path.realpath(self.folder)
        if os.path.normpath(target) != root and not os.path.normpath(target).startswith(root.rstrip("/") + "/"):
            raise self._escape(asked)
        return os.path.relpath(os.path.normpath(target), root)

    def _spelled(self, done: list[str], part: str) -> str:
        """The name as the directory spells it: a composed name finds its decomposed twin (case 028)."""
        if part.isascii() or self._stat("/".join((*done, part))) is not None:
            return part
        wanted = unicodedata.normalize("NFC", part)
        with contextlib.suppress(OSError, Refused), self.directory("/".join(done)) as fd:
            return next((name for name in os.listdir(fd) if unicodedata.normalize("NFC", name) == wanted), part)
        return part

    def _refuse_git(self, asked: str, here: str, found: os.stat_result | None) -> None:
        """`.git` by name at any depth, and by identity where another name leads to the same directory."""
        own = self._stat(".git")
        alias = own is not None and found is not None and (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino)
        if alias or protected.is_git(here):
            raise refuse(
                "protected_path",
                f"{asked} lies in git's own directory, which no tool touches. Use the git tool.",
                asked,
            )

    def _escape(self, asked: str) -> Refused:
        return refuse(
            "symlink_escape", f"{asked} leads out of the workspace through a link. Nothing was touched.", asked
        )

    # -- opening ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def directory(self, path: str) -> Generator[int]:
        """A descriptor of a directory by its resolved path ("" is the root).

        Raises Refused (`symlink_escape`: a part has become a link) or OSError.
        """
        fd = self.open_directory(path)
        try:
            yield fd
        finally:
            os.close(fd)

    def open_directory(self, path: str) -> int:
        """As `directory`, for the caller to close."""
        if not path:
            return os.dup(self.fd)
        try:
            fd = kernel.open_beneath(self.fd, path, DIRECTORY)
            return self._walk(path) if fd is None else fd
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EXDEV} or (error.errno == errno.ENOTDIR and self._has_link(path)):
                raise self._escape(path) from error
            raise

    def _walk(self, path: str) -> int:
        """As openat2, part by part: each opened without following a link."""
        fd = os.dup(self.fd)
        for part in path.split("/"):
            try:
                inner = os.open(part, DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _has_link(self, path: str) -> bool:
        """O_NOFOLLOW with O_DIRECTORY says ENOTDIR of a link, too."""
        parts = path.split("/")
        found = (self._stat("/".join(parts[: depth + 1])) for depth in range(len(parts)))
        return any(one is not None and stat.S_ISLNK(one.st_mode) for one in found)

    def make_directories(self, path: str) -> list[str]:
        """Make a directory and those above it; returns the new ones, outermost first. Raises Refused or OSError."""
        made: list[str] = []
        parts = path.split("/") if path else []
        for depth in range(len(parts)):
            above, here = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
            if self._stat(here) is None:
                with self.directory(above) as fd, contextlib.suppress(FileExistsError):
                    os.mkdir(parts[depth], dir_fd=fd)
                    os.fsync(fd)
                    made.append(here)
        return made

    def remove_directories(self, made: Iterable[str]) -> None:
        """Remove directories that were made for a change and are empty (innermost first); others stay."""
        for path in sorted(made, key=len, reverse=True):
            above, _, name = path.rpartition("/")
            with contextlib.suppress(OSError, Refused), self.directory(above) as fd:
                os.rmdir(name, dir_fd=fd)

    def missing_directories(self, path: str) -> list[str]:
        """The directories above a resolved path that would have to be made, outermost first."""
        parts = path.split("/")[:-1]
        above = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return [one for one in above if self._stat(one) is None]

    # -- reading ------------------------------------------------------------------------------------------------------

    def look(self, asked: str, *, follow: bool = True, bytes_max: int = READ_MAX) -> Entry:
        """What stands at a path, with a file's whole content. Raises Refused (see `resolve`; `too_large`)."""
        return self.at(asked, self.resolve(asked, follow=follow), bytes_max=bytes_max)

    def at(self, asked: str, path: str, *, bytes_max: int = READ_MAX) -> Entry:
        """As `look`, by a resolved path: no link is followed."""
        if not path:
            return Entry(asked, path, "directory")
        above, _, name = path.rpartition("/")
        try:
            with self.directory(above) as fd:
                return read_entry(fd, name, asked, path, bytes_max=bytes_max)
        except (FileNotFoundError, NotADirectoryError):
            return Entry(asked, path, "missing")
        except PermissionError as error:
            raise refuse("read_only", f"{asked} may not be read ({error.strerror}).", asked) from error
        except OSError as error:
            raise refuse("io_error", f"{asked} cannot be read ({error.strerror}).", asked) from error


def read_entry(dir_fd: int, name: str, asked: str, path: str, *, bytes_max: int = READ_MAX) -> Entry:
    """One name of an open directory. Never blocks on a FIFO or device, never follows a link (ATK-16). Raises OSError."""
    found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    mode, inode, links = found.st_mode, found.st_ino, found.st_nlink
    if stat.S_ISLNK(mode):
        return Entry(asked, path, "link", os.fsencode(os.readlink(name, dir_fd=dir_fd)), mode, inode, links)
    if stat.S_ISDIR(mode):
        return Entry(asked, path, "directory", None, mode, inode, links)
    if not stat.S_ISREG(mode):
        return Entry(asked, path, "special", None, mode, inode, links)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return Entry(asked, path, "special", None, found.st_mode, found.st_ino, found.st_nlink)
        data = file.read(bytes_max + 1) if found.st_size <= bytes_max else None
        if data is None or len(data) > bytes_max:
            raise refuse("too_large", f"{asked} is larger than {bytes_max} bytes. Nothing was changed.", asked)
        return Entry(asked, path, "file", data, found.st_mode, found.st_ino, found.st_nlink)
