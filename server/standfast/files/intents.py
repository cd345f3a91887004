"""What a call is about to do to files, as it stands in the log before it does it (R4.4; design.md "Verification"). Pure.

After a crash only these and the blobs exist, so they hold everything that verifying, completing and undoing need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from standfast.events.types import Intent, Shape
from standfast.files.entry import Entry, FileChange

PRE_IMAGE_MAX = 64 * 1024 * 1024
"""Bytes of a pre-image that is kept; above it undo is not possible, and the permission says so."""
TEMPORARY_SUFFIX = ".tmp~"


class Side(Shape, frozen=True):
    """A file at one end of a change. `link`: its content is the link's target. `mode`: the whole st_mode, where known."""

    version: str
    inode: int | None = None
    mode: int | None = None
    link: bool = False


class FileIntent(Intent, frozen=True):
    """One file's change. `temp` lies beside the file (at its new place), `from_temp` beside the old place of a move.

    `before` None: there was no file. `after` None: there is to be none. Blobs: ids of the contents; `before_blob` is None
    above the cap. `made`: directories that have to be made for it, outermost first. `left`: directories that go with a
    file that is taken away, where nothing else is in them (an earlier call had made them for it).
    """

    kind: Literal["file"] = "file"
    path: str
    uri: str
    change: Literal["add", "update", "delete", "move"]
    from_path: str | None = None
    from_uri: str | None = None
    before: Side | None = None
    after: Side | None = None
    before_blob: str | None = None
    after_blob: str | None = None
    temp: str
    from_temp: str | None = None
    made: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """One name of the workspace that an intent changes: a move has two, any other change one.

    `made`: directories that stand for this file alone; without it and anything else in them they go.
    """

    path: str
    uri: str
    before: Side | None
    after: Side | None
    before_blob: str | None
    after_blob: str | None
    temp: str
    made: tuple[str, ...] = ()

    @property
    def back_temp(self) -> str:
        """The journalled name for taking the change back: another one, so that a torn write of ours and a version that
        somebody saved in the moment of an exchange can be told apart."""
        return back_name(self.temp)


def names_of(intent: FileIntent) -> list[Name]:
    """The names in the order in which they are changed. A move first takes the old name away, so that a mere change of
    case works on a file system that folds it."""
    if intent.from_path is None or intent.from_temp is None:
        blobs = (intent.before_blob, intent.after_blob)
        return [
            Name(intent.path, intent.uri, intent.before, intent.after, *blobs, intent.temp, intent.made + intent.left)
        ]
    old = Name(
        intent.from_path, intent.from_uri or intent.uri, intent.before, None, intent.before_blob, None, intent.from_temp,
        intent.left,
    )  # fmt: skip
    return [old, Name(intent.path, intent.uri, None, intent.after, None, intent.after_blob, intent.temp, intent.made)]


class BufferIntent(Intent, frozen=True):
    """A change of unsaved text in an editor: the disk says nothing about it."""

    kind: Literal["buffer"] = "buffer"
    path: str
    uri: str
    version: int
    before_blob: str
    after_blob: str


def file_intents(intents: Iterable[Intent]) -> list[FileIntent]:
    """The file intents among those of a log (there they are plain `Intent`s with extra fields)."""
    return [FileIntent.model_validate(intent.model_dump(by_alias=True)) for intent in intents if intent.kind == "file"]


def buffer_intents(intents: Iterable[Intent]) -> list[BufferIntent]:
    return [
        BufferIntent.model_validate(intent.model_dump(by_alias=True)) for intent in intents if intent.kind == "buffer"
    ]


def temporary_name(call_id: str, number: int, *, source: bool = False) -> str:
    """The journalled name beside the `number`th file of a call: hidden, ours, of fixed length, the same when asked again."""
    tag = sha256(call_id.encode()).hexdigest()[:16]
    return f".standfast-{tag}-{number}{'-from' if source else ''}{TEMPORARY_SUFFIX}"


def back_name(temp: str) -> str:
    """The second journalled name beside a file."""
    return temp.removesuffix(TEMPORARY_SUFFIX) + "-back" + TEMPORARY_SUFFIX


def side_of(entry: Entry) -> Side | None:
    """The before side of what was found."""
    if entry.version is None or not entry.exists:
        return None
    return Side(version=entry.version, inode=entry.inode, mode=entry.mode, link=entry.kind == "link")


def intent_of(
    change: FileChange, number: int, call_id: str, *, uri: str, from_uri: str | None, made: Sequence[str]
) -> FileIntent:
    """The intent of one change. `uri` belongs to its path afterwards."""
    before = side_of(change.before)
    version = change.after_version
    kept_mode = change.mode if before is None else before.mode
    after = None if version is None else Side(version=version, mode=kept_mode, link=_is_link(kept_mode))
    small = change.before.data is not None and len(change.before.data) <= PRE_IMAGE_MAX
    return FileIntent(
        path=change.path,
        uri=uri,
        change=change.change,
        from_path=change.from_path,
        from_uri=from_uri,
        before=before,
        after=after,
        before_blob=before.version if before is not None and small else None,
        after_blob=version,
        temp=temporary_name(call_id, number),
        from_temp=temporary_name(call_id, number, source=True) if change.from_path else None,
        made=tuple(made),
    )


def _is_link(mode: int | None) -> bool:
    return mode is not None and mode & 0o170000 == 0o120000
