"""A session as files that a person can read and move (R3.4): `session.json`, `events.jsonl`, `blobs/`.

`events.jsonl` holds each event as clients see it, hash included, so that whoever takes it in can tell whether it is whole.
Written a page at a time; each file appears whole or not at all.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from standfast.errors import NotFound, StandfastError
from standfast.projections.rows import SessionRow
from standfast.store.base import Damage, Store

FORMAT = "standfast-session"
FORMAT_VERSION = 1
PAGE = 200

_HEX = re.compile(r'"([0-9a-f]{64})"')


async def export_session(store: Store, session_id: str, directory: Path) -> None:
    """Write a session to `directory`, which is made if need be and must be empty.

    Raises NotFound (`SessionNotFound`), StandfastError (`ExportFailed`), StoreError.
    """
    await store.settle()
    row = await store.session(session_id)
    if row is None:
        raise NotFound("SessionNotFound", f"There is no session {session_id}. Nothing was written.")
    damage = await store.damage(session_id)
    try:
        await asyncio.to_thread(_begin, directory)
        await _events(store, row, directory)
        await asyncio.to_thread(_finish, directory, "session.json", orjson.dumps(_about(row, damage), option=_PRETTY))
    except OSError as error:
        raise StandfastError(
            "ExportFailed",
            f"{directory} could not be written ({error.strerror}). The session is untouched. Try another place.",
        ) from error


_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def _about(row: SessionRow, damage: Damage | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "format": FORMAT,
        "formatVersion": FORMAT_VERSION,
        "sessionId": row.session_id,
        "userId": row.user_id,
        "workspaceUri": row.workspace_uri,
        "title": row.title,
        "mode": row.mode,
        "model": row.model,
        "status": row.status,
        "createdAtMs": row.created_at_ms,
        "updatedAtMs": row.updated_at_ms,
        "headSeq": row.head_seq,
        "headHash": row.head_hash,
    }
    if damage is not None:
        about["damage"] = {"atSeq": damage.at_seq, "reason": damage.reason}
    return about


async def _events(store: Store, row: SessionRow, directory: Path) -> None:
    """All events up to the head that `session.json` names, and the blobs that they mention."""
    written: set[str] = set()
    after = 0
    part = directory / "events.jsonl.part"
    while after < row.head_seq:
        page = [
            one
            for one in await store.wire_events(row.session_id, after_seq=after, limit=PAGE)
            if one[0] <= row.head_seq
        ]
        if not page:
            break
        after = page[-1][0]
        await asyncio.to_thread(_add, part, [text for _, text in page])
        for blob_id in {name for _, text in page for name in _HEX.findall(text)} - written:
            data = await store.blob(blob_id)
            if data is not None:
                written.add(blob_id)
                await asyncio.to_thread(_finish, directory / "blobs", blob_id, data)
    await asyncio.to_thread(_seal, part, directory / "events.jsonl")


def _begin(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise StandfastError(
            "ExportFailed", f"{directory} is not empty. Nothing was written. Name a new or empty folder."
        )
    (directory / "blobs").mkdir(mode=0o700)
    (directory / "events.jsonl.part").touch(0o600)


def _add(path: Path, lines: Sequence[str]) -> None:
    with path.open("ab") as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def _finish(directory: Path, name: str, data: bytes) -> None:
    part = directory / f"{name}.part"
    part.touch(0o600)
    part.write_bytes(data)
    _seal(part, directory / name)


def _seal(part: Path, target: Path) -> None:
    with part.open("ab") as file:
        file.flush()
        os.fsync(file.fileno())
    part.rename(target)
