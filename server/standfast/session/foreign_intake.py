"""Takes another agent's session file in (R3.6): which program wrote it, whether it is here already, and its history as ours.

A file is read twice, by the line, in a thread: once to see what it is and what in it cannot be read, once to take it in. It is
never changed. A file with the same bytes that is here already adds nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from standfast.errors import StandfastError
from standfast.events.types import SessionCreated
from standfast.foreign import claude_code, codex, pi
from standfast.foreign.retell import Retelling
from standfast.foreign.spoken import Began, Item
from standfast.session.parts import Parts
from standfast.session.workspace import identify, to_uri
from standfast.store.past import Damage, Intake, Past, Progress
from standfast.store.records import Record, Skipped, read_records

LOOKED_AT = 200
"""Records at the beginning of a file by which its program is recognised."""
TOLD_MAX = 5
"""Places left out that are named; the rest is counted."""
ZSTD = b"\x28\xb5\x2f\xfd"
"""How a packed file begins (Codex packs cold sessions)."""
PLAIN = frozenset({"user_message", "assistant_message", "assistant", "response_item"})


@dataclass(slots=True)
class Looked:
    """What the first reading found."""

    program: str
    began: Began
    digest: str
    branch: frozenset[str] | None = None
    skipped: list[Skipped] = field(default_factory=list[Skipped])

    def damage(self) -> Damage | None:
        """What was left out, as a sentence; None if the file is whole."""
        if not self.skipped:
            return None
        more = len(self.skipped) - TOLD_MAX
        words = " ".join(one.sentence for one in self.skipped[:TOLD_MAX]) + (
            f" And {more} more places." if more > 0 else ""
        )
        return Damage(1, f"The file that this history was taken from is not whole. {words}")


async def take_in_file(parts: Parts, path: Path, progress: Progress | None = None) -> tuple[str, bool]:
    """(session id, whether anything was added). Raises ImportFailed: then nothing is there. Can be cancelled: likewise."""
    try:
        looked = await asyncio.to_thread(look, path)
        origin = {
            "kind": "import",
            "program": looked.program,
            "sessionId": looked.began.session_id,
            "headHash": looked.digest,
        }
        here = await parts.store.copy_of(looked.began.session_id, looked.digest)
        if here is not None:
            return here, False
        target = parts.ids.new("ses")
        created = await _created(parts, looked, path, origin)
        history = _history(parts, path, looked, created)
        await parts.store.take_in(Intake(target, history, damage=looked.damage(), progress=progress))
    except OSError as error:
        raise _failed(path, f"cannot be read ({error.strerror})") from error
    return target, True


def look(path: Path) -> Looked:
    """The first reading. Raises ImportFailed for a file that none of the programs wrote, OSError."""
    digest = sha256()
    with path.open("rb") as stream:
        if stream.read(len(ZSTD)) == ZSTD:
            raise _failed(
                path, "is packed (zstd). Unpack it (`zstd -d FILE`) and take in the .jsonl file that this makes"
            )
        stream.seek(0)
        while block := stream.read(1 << 20):
            digest.update(block)
    skipped: list[Skipped] = []
    program = _program(_values(path, []))
    if program is None:
        raise _failed(path, "is not a session of Codex, Claude Code or pi, nor a folder made by `export`")
    branch = pi.branch(_values(path, skipped)) if program == pi.PROGRAM else None
    if branch is None:
        for _ in _values(path, skipped):
            pass
    items = (item for item in _items(path, program, branch) if isinstance(item, Began))
    began = next(items, None) or Began(0, program, "", "")
    return Looked(program, began, digest.hexdigest(), branch, skipped)


def _program(values: Iterable[dict[str, Any]]) -> str | None:
    plain = False
    for at, record in enumerate(values):
        if pi.is_pi(record):
            return pi.PROGRAM
        if codex.is_codex(record):
            return codex.PROGRAM
        if claude_code.is_claude_code(record):
            return claude_code.PROGRAM
        plain = plain or record.get("type") in PLAIN
        if at == LOOKED_AT:
            break
    return codex.PROGRAM if plain else None


def _values(path: Path, skipped: list[Skipped]) -> Iterator[dict[str, Any]]:
    with path.open("rb") as stream:
        for found in read_records(stream):
            if isinstance(found, Record):
                yield found.value
            else:
                skipped.append(found)


def _items(path: Path, program: str, branch: frozenset[str] | None) -> Iterator[Item]:
    records = _values(path, [])
    match program:
        case pi.PROGRAM:
            return pi.read(records, branch)
        case claude_code.PROGRAM:
            return claude_code.read(records)
        case _:
            return codex.read(records)


def _history(parts: Parts, path: Path, looked: Looked, created: SessionCreated) -> Iterator[Past]:
    yield Past(looked.began.at_ms, None, created)
    retelling = Retelling(looked.began, parts.ids, first_seq=2)
    for happened in retelling.facts(_items(path, looked.program, looked.branch)):
        yield Past(happened.at_ms, happened.run_id, happened.fact)


async def _created(parts: Parts, looked: Looked, path: Path, origin: dict[str, Any]) -> SessionCreated:
    """Bound to the folder that the file names, wherever it is now; to the file's own where it names none."""
    folder = Path(looked.began.folder) if looked.began.folder.startswith("/") else path.parent
    found = await identify(folder)
    return SessionCreated(
        workspace_uri=to_uri(folder), user_id=parts.user_id, origin=origin,
        identity=found.to_json() if found is not None else {},
    )  # fmt: skip


def _failed(path: Path, why: str) -> StandfastError:
    return StandfastError("ImportFailed", f"{path} {why}. Nothing was taken in.")
