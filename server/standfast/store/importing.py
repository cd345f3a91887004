"""Takes an exported session back in (R3.4, design.md "Export"): checked where it can be, chained anew, never twice.

The files are read twice, both times by the line: once to check and to see whether the history is here already, once to take
it in, in batches that count once all are stored. A history whose id is free keeps it and every id in it, so that its chain stays
the same; where the id is taken, it becomes a copy: new ids throughout, and what was open in the original is closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson

from standfast.clock import Ids
from standfast.errors import StandfastError
from standfast.events.encode import chain, decode, dump_unruly
from standfast.events.types import Fact, SessionCreated
from standfast.store.base import Damage, Store
from standfast.store.past import Intake, Past, Progress
from standfast.store.records import Record, Skipped, read_records
from standfast.store.renaming import Renamed

_HASH = re.compile(rb',"hash":"([0-9a-f]{64})"\}$')


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of an import. `skipped`: sentences with byte offsets of what could not be read."""

    session_id: str
    added: int
    skipped: list[str]
    damage: Damage | None


@dataclass(slots=True)
class _Looked:
    """What the first reading found."""

    session_id: str
    last_seq: int = 0
    last_hash: str = ""
    damage: Damage | None = None
    skipped: list[Skipped] = field(default_factory=list[Skipped])


async def import_session(
    store: Store, directory: Path, ids: Ids, *, force: bool = False, progress: Progress | None = None
) -> Imported:
    """Take in what `export` wrote; `directory` holds at least `events.jsonl`.

    A history that is already here adds nothing. Raises StandfastError: `ImportFailed` (no such files, nothing readable in
    them), `HistoryDamaged` (not what was written; `force` takes it in all the same, and says so in the session), StoreError.
    """
    try:
        looked = await asyncio.to_thread(_look, directory)
        if looked.damage is not None and not force:
            raise StandfastError(
                "HistoryDamaged",
                f"{directory} is not what was exported: {looked.damage.reason} Nothing was taken in. Export it again where it "
                "came from, or take in what is there with --force.",
                atSeq=looked.damage.at_seq,
            )
        here = await _already_here(store, looked)
        words = [one.sentence for one in looked.skipped]
        if here is not None:
            return Imported(here, 0, words, looked.damage)
        spoilt = await asyncio.to_thread(_spoilt_blobs, directory)
        if spoilt and not force:
            raise StandfastError(
                "HistoryDamaged",
                f"{directory} is not what was exported: {spoilt[0]} Nothing was taken in. Export it again where it came from, or "
                "take in what is there with --force.",
            )
        words += spoilt
        taken = await store.session(looked.session_id) is not None
        target = ids.new("ses") if taken or not looked.session_id else looked.session_id
        copied = bool(looked.session_id) and target != looked.session_id
        history = _records(directory, looked, Renamed(ids) if copied else None)
        added = await store.take_in(Intake(target, history, _blobs(directory), copied, looked.damage, progress))
    except OSError as error:
        raise StandfastError(
            "ImportFailed",
            f"{directory} cannot be read ({error.strerror}). Nothing was taken in. Name a folder made by `export`.",
        ) from error
    return Imported(target, added, words, looked.damage)


async def _already_here(store: Store, looked: _Looked) -> str | None:
    """The session that holds this history already: itself, or a copy that was made of it."""
    if await store.event_hash(looked.session_id, looked.last_seq) == looked.last_hash:
        return looked.session_id
    return await store.copy_of(looked.session_id, looked.last_hash)


# -- the first reading ------------------------------------------------------------------------------------------------


def _look(directory: Path) -> _Looked:
    looked: _Looked | None = None
    with (directory / "events.jsonl").open("rb") as stream:
        skipped: list[Skipped] = []
        for item in read_records(stream):
            if isinstance(item, Skipped):
                skipped.append(item)
                continue
            if looked is None:
                looked = _Looked(str(item.value.get("sessionId", "")))
                looked.last_hash = looked.session_id
            _check(looked, item)
    if looked is None:
        raise StandfastError(
            "ImportFailed", f"{directory} holds no event. Nothing was taken in. Name a folder made by `export`."
        )
    looked.skipped = skipped
    about = _about(directory)
    if looked.damage is None and isinstance(about.get("headSeq"), int) and about["headSeq"] > looked.last_seq:
        looked.damage = Damage(
            looked.last_seq + 1, f"It ends at event {looked.last_seq}, but {about['headSeq']} were written."
        )
    return looked


def _check(looked: _Looked, item: Record) -> None:
    """Follow `seq` and the chain; the first break is remembered. An event without a hash is believed."""
    found = _HASH.search(item.raw)
    seq = item.value.get("seq")
    expected = looked.last_seq + 1
    body = item.raw[: found.start()].decode("utf-8", "replace") + "}" if found else item.raw.decode("utf-8", "replace")
    digest = chain(looked.last_hash, body)
    if looked.damage is None and isinstance(seq, int) and seq != expected:
        looked.damage = Damage(expected, f"Event {expected} is missing (at offset {item.offset}).")
    if looked.damage is None and (found is None) != ("hash" not in item.value):
        looked.damage = Damage(expected, f"Event {expected} was written anew (at offset {item.offset}).")
    if looked.damage is None and found is not None and found[1].decode() != digest:
        looked.damage = Damage(expected, f"Event {expected} is not what was written (at offset {item.offset}).")
    looked.last_seq, looked.last_hash = expected, digest


def _about(directory: Path) -> dict[str, Any]:
    try:
        about: Any = orjson.loads((directory / "session.json").read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return cast("dict[str, Any]", about) if isinstance(about, dict) else {}


# -- the second reading -----------------------------------------------------------------------------------------------


def _records(directory: Path, looked: _Looked, renamed: Renamed | None) -> Iterator[Past]:
    with (directory / "events.jsonl").open("rb") as stream:
        yield from _history((item for item in read_records(stream) if isinstance(item, Record)), looked, renamed)


def _blobs(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted((directory / "blobs").glob("?" * 64)):
        data = path.read_bytes()
        if sha256(data).hexdigest() == path.name:  # with --force: bytes that are not what their name says are of no use
            yield path.name, data


def _spoilt_blobs(directory: Path) -> list[str]:
    """A sentence for each stored content that is not what its name, its hash, says."""
    return [
        f"The content blobs/{path.name} is not what was written."
        for path in sorted((directory / "blobs").glob("?" * 64))
        if sha256(path.read_bytes()).hexdigest() != path.name
    ]


def _history(records: Iterator[Record], looked: _Looked, renamed: Renamed | None) -> Iterator[Past]:
    begun = False
    for item in records:
        value = renamed.rename(item.value) if renamed else item.value
        at_ms = value.get("atMs")
        run_id = value.get("runId")
        fact, body = _read(item, value, renamed=renamed is not None)
        if not begun and not isinstance(fact, SessionCreated):
            yield Past(at_ms if isinstance(at_ms, int) else 0, None, SessionCreated(workspace_uri=""))
        begun = True
        if isinstance(fact, SessionCreated) and renamed:
            fact = fact.model_copy(update={"origin": origin_of(looked.session_id, looked.last_hash)})
        yield Past(at_ms if isinstance(at_ms, int) else 0, run_id if isinstance(run_id, str) else None, fact, body)


def _read(item: Record, value: dict[str, Any], *, renamed: bool) -> tuple[Fact, str | None]:
    """The fact, and its body where it is as it was stored."""
    if renamed or not item.exact:
        return decode(dump_unruly(value)), None
    found = _HASH.search(item.raw)
    return decode(item.raw), item.raw[: found.start()].decode() + "}" if found else item.raw.decode()


def origin_of(session_id: str, head_hash: str) -> dict[str, Any]:
    """How a copy says what it is a copy of."""
    return {"kind": "import", "sessionId": session_id, "headHash": head_hash}
