"""The conformance transcripts, played as the client against the daemon's front (protocol-spec/transcripts/README.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from wire.raw import Json, Raw, connect, house

TRANSCRIPTS = Path(__file__).parents[2] / "protocol-spec/transcripts"
FILES = sorted(TRANSCRIPTS.glob("*.jsonl"))


class Mismatch(AssertionError):
    """What was said differs from what is written, with its path."""


class Player:
    """Plays the client's steps and holds the daemon's against what is written. Messages are looked at in order, each once a method."""

    def __init__(self, raw: Raw, known: dict[str, Any]) -> None:
        self._raw = raw
        self._known = known
        self._unread: list[Json] = []

    async def play(self, steps: list[Json]) -> None:
        for number, step in enumerate(steps, 1):
            if "client" in step:
                self._raw.send(self._filled(step["client"]))
            else:
                said = await self._said(step["daemon"])
                self._compare(step["daemon"], said, f"step {number}: $")

    async def _said(self, wanted: Json) -> Json:
        """The next message of that method, or the answer with that id."""
        while True:
            for at, message in enumerate(self._unread):
                if self._is_it(wanted, message):
                    return self._unread.pop(at)
            message = await self._raw.next()
            if message is None:
                raise Mismatch(f"the connection ended before {json.dumps(wanted)[:200]}")
            self._unread.append(message)

    def _is_it(self, wanted: Json, message: Json) -> bool:
        if "method" in wanted:
            return message.get("method") == wanted["method"]
        return "method" not in message and message.get("id") == self._filled(wanted["id"])

    def _compare(self, wanted: Any, said: Any, path: str) -> None:
        if isinstance(wanted, dict):
            for key, value in wanted.items():
                if not isinstance(said, dict) or key not in said:
                    raise Mismatch(f"{path}.{key}: is not there")
                self._compare(value, said[key], f"{path}.{key}")
        elif isinstance(wanted, list):
            if not isinstance(said, list) or len(said) != len(wanted):
                raise Mismatch(f"{path}: wanted {len(wanted)} entries, got {json.dumps(said)[:200]}")
            for index, value in enumerate(wanted):
                self._compare(value, said[index], f"{path}[{index}]")
        elif wanted != "$_":
            name = wanted[1:] if isinstance(wanted, str) and re.fullmatch(r"\$\w+", wanted) else None
            if name is not None and name not in self._known:
                self._known[name] = said
            elif self._filled(wanted) != said:
                raise Mismatch(f"{path}: wanted {json.dumps(self._filled(wanted))}, got {json.dumps(said)}")

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._filled(part) for part in value]
        if not isinstance(value, str):
            return value
        if value[:1] == "$" and value[1:] in self._known:
            return self._known[value[1:]]
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self._known[found[1]]), value)


def steps_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def play(steps: list[Json], tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    async with house(tmp_path / "home") as daemon, connect(daemon) as raw:
        await Player(raw, {"workspace": folder.as_uri()}).play(steps)
        if steps[-1].get("client", {}).get("method") == "exit":
            await raw.rest()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
async def test_the_daemon_plays_its_part(path: Path, tmp_path: Path) -> None:
    await play(steps_of(path), tmp_path)


async def test_a_field_of_another_name_is_named_with_its_path(tmp_path: Path) -> None:
    text = (TRANSCRIPTS / "run.jsonl").read_text().replace('"workspaceState"', '"workspaceStatus"')
    with pytest.raises(Mismatch, match=r"step 5: \$\.result\.session\.workspaceStatus: is not there"):
        await play([json.loads(line) for line in text.splitlines()], tmp_path)


async def test_events_in_another_order_are_named_with_their_path(tmp_path: Path) -> None:
    steps = steps_of(TRANSCRIPTS / "run.jsonl")
    steps[9], steps[10] = steps[10], steps[9]
    with pytest.raises(Mismatch, match=r"step 10: \$\.params\.event\.seq: wanted 3, got 2"):
        await play(steps, tmp_path)
