"""A whole envelope over a workspace: each section sees what earlier ones did, and all of it holds or nothing (POLICY 1, 6).

Pure but for `look`, which the caller passes in. The result is the net change of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from standfast.files.entry import Entry, FileChange
from standfast.files.patch_apply import Applied, apply_hunks
from standfast.files.patch_parse import Section
from standfast.files.refusal import Refusal, Refused, refuse
from standfast.files.text import read_text


class Look(Protocol):
    """What stands at a path (`Root.look`, or with unsaved buffers on top). Raises Refused."""

    def __call__(self, asked: str, *, follow: bool = True) -> Entry: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose where the patch alone did not fit: places of hunks, or a whole content (of a file that was
    deleted, too: it is written again)."""

    path: str
    places: Mapping[int, int] = field(default_factory=dict[int, int])
    """hunk index → line from 1"""
    merged: bytes | None = None
    skip_applied: bool = False


class Pending:
    """The workspace as it will be: what was found, and what will stand there."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.found: dict[str, Entry] = {}
        self.will: dict[str, bytes | None] = {}
        self.moves: dict[str, str] = {}
        """new path → old path"""
        self.modes: dict[str, int] = {}

    def see(self, asked: str, *, follow: bool = True) -> Entry:
        entry = self.look(asked, follow=follow)
        return self.found.setdefault(entry.path, entry)

    def data(self, entry: Entry) -> bytes | None:
        """The content there will be; None: no file."""
        return self.will.get(entry.path, entry.data if entry.kind in {"file", "link"} else None)

    def is_taken(self, entry: Entry) -> bool:
        """Whether something will stand at the path, also a directory that other sections need."""
        if entry.path in self.will:
            return self.will[entry.path] is not None
        inside = entry.path + "/"
        return entry.exists or any(path.startswith(inside) and data is not None for path, data in self.will.items())

    def needs_parent(self, entry: Entry) -> None:
        """Raises Refused (`not_a_directory`) where an earlier section puts a file in place of a directory above."""
        parts = entry.path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            if self.will.get(above) is not None:
                raise refuse(
                    "not_a_directory",
                    f"{above} is a file in this patch, so {entry.asked} cannot be in it.",
                    entry.asked,
                )

    def put(self, entry: Entry, data: bytes | None, *, mode: int | None = None) -> None:
        self.will[entry.path] = data
        if mode is not None:
            self.modes[entry.path] = mode

    def changes(self) -> tuple[FileChange, ...]:
        """The net change of each file, in the order of first mention. What ends as it began is none."""
        changes: list[FileChange] = []
        moved = {old for new, old in self.moves.items() if self._is_move(new, old)}
        for path, after in self.will.items():
            entry = self.found[path]
            before = entry.data if entry.exists else None
            old = self.moves.get(path)
            if old is not None and self._is_move(path, old):
                changes.append(FileChange("move", self.found[old], after, entry))
            elif after is not None and not entry.exists:
                changes.append(FileChange("add", entry, after, mode=self.modes.get(path)))
            elif after is None and entry.exists and path not in moved:
                changes.append(FileChange("delete", entry, None))
            elif after is not None and entry.exists and after != before:
                changes.append(FileChange("update", entry, after))
        return tuple(changes)

    def _is_move(self, new: str, old: str) -> bool:
        """Whether a move stays one in the end: from a name that was taken and is free, to one that was free and is taken."""
        was, will = self.found[old].exists, self.will.get(old) is not None
        return was and not will and not self.found[new].exists and self.will.get(new) is not None


def plan_patch(
    sections: Sequence[Section], look: Look, choice: Choice | None = None
) -> tuple[FileChange, ...] | Refusal:
    """The net changes of a patch, or why it is refused: the first section that does not fit, by its path."""
    pending = Pending(look)
    steps: dict[str, Callable[[Pending, Section, Choice | None], None]] = {
        "add": _add,
        "delete": _delete,
        "update": _update,
    }
    for section in sections:
        try:
            steps[section.change](pending, section, choice)
        except Refused as refused:
            refusal = refused.refusal
            return refusal.at(refusal.path or section.path)
    return pending.changes()


def _see(pending: Pending, asked: str) -> Entry:
    """What a path leads to, but not through a name that this patch takes away. Raises Refused (`not_a_directory`)."""
    if any(data is None for data in pending.will.values()):
        parts = asked.split("/")
        names = [pending.look("/".join(parts[:depth]) or asked, follow=False) for depth in range(1, len(parts) + 1)]
        gone = [name for name in names if name.exists and pending.will.get(name.path, b"") is None]
        if gone and gone[0] is not names[-1]:
            said = f"{gone[0].path} is taken away by this patch; what is to lie beneath it needs a patch of its own."
            raise refuse("not_a_directory", said, asked)
        if gone:
            return pending.see(asked, follow=False)
    return pending.see(asked)


def _is_link(pending: Pending, asked: str) -> bool:
    """Whether the name itself is a link; one that leads to nothing takes the name as well."""
    return pending.look(asked, follow=False).kind == "link"


def _add(pending: Pending, section: Section, _: Choice | None) -> None:
    entry = _see(pending, section.path)
    if pending.is_taken(entry) or _is_link(pending, section.path):
        raise refuse(
            "exists", f"{section.path} is there already; 'Add' overwrites nothing. Use '*** Update File'.", section.path
        )
    pending.needs_parent(entry)
    pending.put(entry, "".join(line + "\n" for line in section.content).encode())


def _delete(pending: Pending, section: Section, _: Choice | None) -> None:
    entry = pending.see(section.path, follow=False)
    if not pending.is_taken(entry):
        raise refuse("not_found", f"{section.path} is not there, so it cannot be deleted.", section.path)
    if pending.data(entry) is None:
        raise refuse(
            "not_a_file", f"{section.path} is no regular file; only files and links are deleted.", section.path
        )
    writable(entry, section.path, removes=True)
    pending.put(entry, None)


def _update(pending: Pending, section: Section, choice: Choice | None) -> None:
    entry = _see(pending, section.path)
    if not pending.is_taken(entry) and _writes_again(section, choice):
        pending.needs_parent(entry)
        pending.put(entry, choice.merged if choice else None)
        return
    if not pending.is_taken(entry):
        raise refuse("not_found", f"{section.path} is not there. Use '*** Add File' for a new file.", section.path)
    data = pending.data(entry)
    if data is None or entry.kind == "link":
        raise refuse("not_a_file", f"{section.path} is no regular file, so it cannot be changed.", section.path)
    writable(entry, section.path, removes=section.move_to is not None)
    after = _changed(section, data, choice)
    if section.move_to is None:
        pending.put(entry, after)
        return
    target = _see(pending, section.move_to)
    if target.path == entry.path:
        pending.put(entry, after)
        return
    if (pending.is_taken(target) and not _is_same_file(target, entry)) or _is_link(pending, section.move_to):
        raise refuse(
            "destination_exists", f"{section.move_to} is there already; a move overwrites nothing.", section.path
        )
    pending.needs_parent(target)
    if pending.see(section.path, follow=False).kind == "link":
        raise refuse("not_a_file", f"{section.path} is a link; move the file that it leads to.", section.path)
    if _is_same_file(target, entry):  # another spelling on a file system that folds case: the new name is free
        pending.found[target.path] = Entry(target.asked, target.path, "missing")
    pending.put(entry, None)
    pending.put(target, after)
    pending.moves[target.path] = entry.path


def _writes_again(section: Section, choice: Choice | None) -> bool:
    """The person chose that a file which was deleted is written again; what was to be moved cannot be."""
    chosen = choice is not None and choice.path == section.path and choice.merged is not None
    return chosen and section.move_to is None


def _is_same_file(one: Entry, other: Entry) -> bool:
    """Two spellings of one name (not two hard links: their names differ in more than case)."""
    return one.exists and one.inode == other.inode and one.path.casefold() == other.path.casefold()


def _changed(section: Section, data: bytes, choice: Choice | None) -> bytes:
    mine = choice if choice is not None and choice.path == section.path else Choice(section.path)
    if mine.merged is not None:
        return mine.merged
    if not section.hunks:
        return data
    text = read_text(data)
    if isinstance(text, Refusal):
        raise Refused(text.at(section.path))
    result = apply_hunks(text, section.hunks, chosen=mine.places, skip_applied=mine.skip_applied)
    if not isinstance(result, Applied):
        raise Refused(result.at(section.path))
    return result.text.encode()


def writable(entry: Entry, asked: str, *, removes: bool = False) -> None:
    """Raises Refused: `read_only` by the mode bits, `dirty_buffer` where unsaved text would be deleted or moved away."""
    if entry.is_read_only:
        raise refuse(
            "read_only", f"{asked} is read-only (mode {entry.mode & 0o7777:04o}); it was left as it is.", asked
        )
    if removes and entry.buffer is not None:
        raise refuse("dirty_buffer", f"{asked} has unsaved text in the editor; save or close it first.", asked)
