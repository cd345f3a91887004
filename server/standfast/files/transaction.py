"""Several files put in place as one: all or none, and nothing of anybody else's lost (design.md "Files"; R11; issue B.2).

Every file is written whole and synced under a journalled name beside its place, then put in place by exchange, so that
what it displaced can be looked at: if that is not the version we meant to replace, it goes back. Displaced files are let
go only when all are in place, nobody has them open for writing, and their content is still the one we know.

Works on descriptors of directories beneath the root only. Blocking; run it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from standfast.errors import StandfastError
from standfast.failpoints import hit
from standfast.files import kernel
from standfast.files.entry import Entry
from standfast.files.intents import Name, Side, back_name
from standfast.files.paths import Root, read_entry
from standfast.files.refusal import Refusal, Refused, refuse
from standfast.files.version import version_of

WRITE_CHUNK = 1 << 20
DIRECTORIES_MAX = 400
"""Directories held open at once; a process may have 1024 descriptors."""


@dataclass(frozen=True, slots=True)
class Step:
    """One name of the workspace: from `before` to `data` (None: no file). `temp` is the journalled name beside it.

    `mode` is st_mode to give (None: as the system likes).
    """

    path: str
    before: Side | None
    data: bytes | None
    temp: str
    mode: int | None = None

    @property
    def above(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def step_of(name: Name, data: bytes | None) -> Step:
    """The step that carries out what an intent says of one name."""
    return Step(name.path, name.before, data, name.temp, name.after.mode if name.after else None)


def step_back(name: Name, data: bytes | None) -> Step:
    """The step that takes it back: `data` is the pre-image."""
    return Step(name.path, name.after, data, name.back_temp, name.before.mode if name.before else None)


def never() -> bool:
    """Never stop early."""
    return False


def execute(root: Root, steps: Sequence[Step], stop: Callable[[], bool] = never) -> Refusal | None:
    """Carry out all steps, or none and say why. None: done, synced, no temporary name left.

    Refused: `file_changed`, `exists`, `not_a_file`, `symlink_escape`, `io_error`, `cancelled` (by `stop`).
    Raises StandfastError (`RollbackFailed`) where something could not be taken back: then only verifying tells the truth.
    """
    with _Work(root, stop) as work:
        return _execute(work, steps)


def _execute(work: _Work, steps: Sequence[Step]) -> Refusal | None:
    try:
        for step in steps:
            work.expect(step)
        for step in steps:
            work.write(step)
        for step in steps:
            work.place(step)
        for step in steps:
            work.confirm(step)
    except Refused as refused:
        return work.give_up(refused.refusal)
    except OSError as error:
        return work.give_up(Refusal("io_error", f"The file system refused ({error}). Nothing was changed."))
    work.finish(steps)
    return None


class _Work:
    """One transaction on its way. `placed` and `written` are what rolling back has to take back."""

    def __init__(self, root: Root, stop: Callable[[], bool]) -> None:
        self.root = root
        self.stop = stop
        self.written: list[Step] = []
        self.placed: list[Step] = []
        self.made: list[str] = []
        self.stuck: list[str] = []
        """Paths that could not be taken back."""
        self.directories: dict[str, int] = {}
        """Descriptors of the directories at work: what is renamed or swapped meanwhile does not lead elsewhere."""

    def __enter__(self) -> _Work:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def directory(self, path: str) -> int:
        """A descriptor of a resolved directory, the same all through. Raises Refused (`symlink_escape`), OSError."""
        if path not in self.directories:
            if len(self.directories) >= DIRECTORIES_MAX:
                self._close()
            self.directories[path] = self.root.open_directory(path)
        return self.directories[path]

    def _close(self) -> None:
        for fd in self.directories.values():
            os.close(fd)
        self.directories.clear()

    # -- before anything is in place ----------------------------------------------------------------------------------

    def expect(self, step: Step) -> None:
        """The name is as the plan saw it (a cheap look; the exchange decides)."""
        found = self.root.at(step.path, step.path)
        if step.before is None:
            return  # an added name: NOREPLACE decides, and a move may free it first
        if not _is(found, step.before):
            raise _moved_on(step, found)

    def write(self, step: Step) -> None:
        """The new content, whole and synced, under the journalled name."""
        if self.stop():
            raise refuse("cancelled", "It was cancelled before anything was put in place.")
        if step.data is None:
            return
        self.made += self.root.make_directories(step.above)
        fd = self.directory(step.above)
        self.written.append(step)
        if step.mode is not None and stat.S_ISLNK(step.mode):
            os.symlink(os.fsdecode(step.data), step.temp, dir_fd=fd)
        else:
            _write_file(fd, step)

    # -- putting in place ---------------------------------------------------------------------------------------------

    def place(self, step: Step) -> None:
        if self.stop():
            raise refuse("cancelled", "It was cancelled; what was in place already was taken back.")
        if self.placed:
            hit("mid_effect")
        hit("before_exchange")
        fd = self.directory(step.above)
        if step.data is None:
            self._take_away(fd, step)
        elif step.before is None:
            self._add(fd, step)
        else:
            self._replace(fd, step)
        hit("after_exchange")

    def _add(self, fd: int, step: Step) -> None:
        try:
            kernel.rename_to_free(fd, step.temp, step.name)
        except FileExistsError as error:
            raise refuse(
                "exists", f"{step.path} appeared in the same moment; it was left as it is.", step.path
            ) from error
        self.placed.append(step)

    def _take_away(self, fd: int, step: Step) -> None:
        kernel.rename_to_free(fd, step.name, step.temp)
        self.placed.append(step)
        self._check_displaced(fd, step)

    def _replace(self, fd: int, step: Step) -> None:
        if kernel.exchange(fd, step.temp, step.name):
            self.placed.append(step)
            self._check_displaced(fd, step)
            return
        # No exchange on this file system: a last look, then rename right after it; the old file keeps a name until the end.
        found = read_entry(fd, step.name, step.path, step.path)
        if step.before is None or not _is(found, step.before):
            raise _moved_on(step, found)
        kept = back_name(step.temp)
        os.link(step.name, kept, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
        os.rename(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd)
        os.rename(kept, step.temp, src_dir_fd=fd, dst_dir_fd=fd)
        self.placed.append(step)

    def _check_displaced(self, fd: int, step: Step) -> None:
        found = read_entry(fd, step.temp, step.path, step.path)
        if step.before is None or not _is(found, step.before):
            raise _moved_on(step, found)

    def confirm(self, step: Step) -> None:
        """Nobody writes into what was displaced, and it is still what we know: only then may it go."""
        if step not in self.placed or step.before is None or step.before.link:
            return
        fd = self.directory(step.above)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        displaced = os.open(step.temp, flags, dir_fd=fd)
        try:
            if kernel.is_written_elsewhere(displaced):
                raise refuse("file_changed", f"{step.path} is being written by another program.", step.path)
        finally:
            os.close(displaced)
        self._check_displaced(fd, step)

    # -- after --------------------------------------------------------------------------------------------------------

    def finish(self, steps: Sequence[Step]) -> None:
        """Let the displaced files go and make the names durable.

        Raises StandfastError (`NotSynced`): all is in place, but whether it would survive a power cut is not known.
        """
        try:
            for step in steps:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(step.temp, dir_fd=self.directory(step.above))
            for above in dict.fromkeys(step.above for step in steps):
                os.fsync(self.directory(above))
        except (OSError, Refused) as error:
            raise StandfastError(
                "NotSynced",
                f"The files are in place, but the disk did not confirm it ({error}). It is looked at again.",
            ) from error

    def give_up(self, refusal: Refusal) -> Refusal:
        """Take back what is in place, in reverse; then remove what was only written. Others' newer work stays."""
        for step in reversed(self.placed):
            self._attempt(step, self._take_back)
        for step in self.written:
            self._attempt(step, _remove_ours)
        for above in {step.above for step in (*self.placed, *self.written)}:
            with contextlib.suppress(OSError, Refused):
                os.fsync(self.directory(above))
        self.root.remove_directories(self.made)
        if self.stuck:
            names = ", ".join(self.stuck)
            raise StandfastError(
                "RollbackFailed", f"{refusal.message} Not all could be taken back ({names}); it is looked at again."
            )
        return refusal

    def _attempt(self, step: Step, act: Callable[[int, Step], None]) -> None:
        """One part of giving up; the others go on if it fails."""
        try:
            act(self.directory(step.above), step)
        except (OSError, Refused) as error:
            if not isinstance(error, FileNotFoundError):
                self.stuck.append(step.path)

    def _take_back(self, fd: int, step: Step) -> None:
        if step.data is None:
            try:
                kernel.rename_to_free(fd, step.temp, step.name)
            except FileExistsError:  # somebody made the file anew: theirs stays, the one it replaces goes
                self._check_displaced(fd, step)
                os.unlink(step.temp, dir_fd=fd)
        elif step.before is None:
            kernel.rename_to_free(fd, step.name, step.temp)
            if not _holds_ours(fd, step):  # somebody saved over the added file: theirs stays
                kernel.rename_to_free(fd, step.temp, step.name)
        else:
            if not kernel.exchange(fd, step.temp, step.name):
                os.rename(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd)
            elif not _holds_ours(fd, step):  # somebody saved over our file in between: theirs is newer and stays
                kernel.exchange(fd, step.temp, step.name)


def _write_file(dir_fd: int, step: Step) -> None:
    """A new file with content, mode and, where the system allows it, owner and extended attributes of the old one."""
    assert step.data is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(step.temp, flags, 0o666 if step.mode is None else 0o600, dir_fd=dir_fd)
    try:
        view = memoryview(step.data)
        while view:
            view = view[os.write(fd, view[:WRITE_CHUNK]) :]
        if step.mode is not None:
            _take_over_attributes(dir_fd, step.name, fd)
            os.fchmod(fd, stat.S_IMODE(step.mode))
        os.fsync(fd)
    finally:
        os.close(fd)


def _take_over_attributes(dir_fd: int, name: str, fd: int) -> None:
    """Owner, group and extended attributes (ACLs are among them) of the file that is replaced; where not allowed, not."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        old = os.open(name, flags, dir_fd=dir_fd)
        try:
            found, ours = os.fstat(old), os.fstat(fd)
            if (found.st_uid, found.st_gid) != (ours.st_uid, ours.st_gid):
                with contextlib.suppress(OSError):
                    os.fchown(fd, found.st_uid, found.st_gid)
            if hasattr(os, "listxattr"):
                for attribute in os.listxattr(old):
                    with contextlib.suppress(OSError):
                        os.setxattr(fd, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)


def _holds_ours(fd: int, step: Step) -> bool:
    found = read_entry(fd, step.temp, step.path, step.path)
    return step.data is not None and found.data is not None and found.version == version_of(step.data)


def _remove_ours(fd: int, step: Step) -> None:
    """Remove the journalled name if it holds what we wrote, whole or (after a full disk) in part, or the recorded content
    from before; never anything else."""
    found = read_entry(fd, step.temp, step.path, step.path)
    is_written = step.data is not None and found.data is not None and step.data.startswith(found.data)
    if is_written or (step.before is not None and _is(found, step.before)):
        os.unlink(step.temp, dir_fd=fd)


def _is(found: Entry, side: Side) -> bool:
    return found.version == side.version and (found.kind == "link") == side.link


def _moved_on(step: Step, found: Entry) -> Refused:
    if found.kind == "missing":
        return refuse("file_changed", f"{step.path} was removed in the meantime. Nothing was changed.", step.path)
    if found.kind in {"directory", "special"}:
        return refuse("not_a_file", f"{step.path} is no regular file any more. Nothing was changed.", step.path)
    return refuse(
        "file_changed", f"{step.path} was changed by somebody else in the meantime; it was left as it is.", step.path
    )
