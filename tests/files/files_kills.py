"""Killing writing calls and looking at what is left; used by the quick tests here and the long ones in tests/full."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from files_desk import TOOLS, Desk, snapshot
from files_writer import FILES, big_blob, big_content, many_patch, read_record

from standfast.tools.base import Verification

HERE = Path(__file__).parent


class Writer:
    """The process that forks a child a call."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "files_writer.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=HERE,
            bufsize=0,
        )

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def order(
        self, folder: Path, record: Path, act: str, call: dict[str, Any], failpoints: str, after_s: float | None
    ) -> bool:
        """Start a call; kill it `after_s` seconds after it started (None: a failpoint does). True: it came to its end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        order = {"folder": str(folder), "record": str(record), "act": act, "call": call, "failpoints": failpoints}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        pid = int(self._word())
        words = [self._word()]
        if words[0] == "started" and after_s is not None:
            ready, _, _ = select.select([self.process.stdout], [], [], after_s)
            if not ready:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        while words[-1] != "ended":
            words.append(self._word())
        assert words[0] == "started", words
        return "done" in words

    def _word(self) -> str:
        assert self.process.stdout is not None
        word = bytearray()
        while not word.endswith(b"\n"):
            piece = self.process.stdout.read(1)
            assert piece, "the writer is gone"
            word += piece
        return word.decode().strip()


def make_many(folder: Path) -> None:
    for number in range(FILES):
        if number % 50 != 2:
            path = folder / f"d{number % 7}/f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"head\nold {number}\ntail")
            path.chmod(0o755 if number % 5 == 0 else 0o644)


def many_after(before: dict[str, Any]) -> dict[str, Any]:
    """What the patch over 300 files leads to, worked out without the code under test."""
    after: dict[str, Any] = {}
    for number in range(FILES):
        name = f"d{number % 7}/f{number}"
        if number % 50 == 2:
            after[f"new/deep{number}/g{number}"] = (f"added {number}\n".encode(), 0o644)
        elif number % 50 != 1:
            data, mode = before[name]
            place = f"moved/f{number}" if number % 50 == 3 else name
            after[place] = (data.replace(b"old", b"new"), mode)
    return after


async def verdict_of(folder: Path, record: Path) -> Verification:
    tool, call, blobs = read_record(record)
    desk = Desk(folder, blobs=blobs)
    return await TOOLS[tool].verify(call, desk.context(call.call_id))


def truth(now: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> str:
    """What the workspace says, known from outside."""
    return "applied" if now == after else "not_applied" if now == before else "partial"


async def try_once(
    writer: Writer, base: Path, number: int, dice: random.Random, call: dict[str, Any], took_s: float
) -> str:
    """One call, killed; then verified, and carried to an end (itself killed now and then). Returns the verdict."""
    folder, record = base / f"w{number}", base / f"record{number}"
    folder.mkdir()
    if call["tool"] == "apply_patch":
        make_many(folder)
        before = snapshot(folder)
        after = many_after(before)
    else:
        (folder / "big.txt").write_text(big_content(1))
        before = snapshot(folder)
        after = {"big.txt": (big_blob(call["seed"])[1], 0o644)}
    failpoints, after_s = _moment(dice, call, took_s)
    writer.order(folder, record, "run", call, failpoints, after_s)

    verification = await verdict_of(folder, record)
    now = snapshot(folder)
    assert not [name for name in now if ".standfast-" in name], "leftovers"
    assert verification.verdict == truth(now, before, after), verification.evidence
    if verification.verdict == "partial":
        action = dice.choice(("complete", "undo"))
        while not writer.order(folder, record, action, call, *_moment(dice, call, took_s)):
            assert (await verdict_of(folder, record)).verdict == truth(snapshot(folder), before, after)
        assert snapshot(folder) == (after if action == "complete" else before)
        wanted = "applied" if action == "complete" else "not_applied"
        assert (await verdict_of(folder, record)).verdict == wanted
    return verification.verdict


def _moment(dice: random.Random, call: dict[str, Any], took_s: float) -> tuple[str, float | None]:
    """When to kill: at a named place, or after some part of the time that it takes."""
    most = FILES if call["tool"] == "apply_patch" else 1
    place = dice.choice(("before_exchange", "after_exchange", "mid_effect", "time", "time"))
    if place == "time" or (place == "mid_effect" and most == 1):
        return "", dice.random() * took_s
    return f"{place}=kill@{dice.randint(1, most)}", None


async def kill_often(base: Path, tries: int, call: dict[str, Any], seed: int) -> list[str]:
    """Many tries, reproducible up to the machine's speed. Returns the verdicts met."""
    writer = Writer()
    try:
        folder = base / "whole"
        folder.mkdir()
        if call["tool"] == "apply_patch":
            make_many(folder)
        else:
            (folder / "big.txt").write_text(big_content(1))
            big_content(call["seed"])
        begin = time.monotonic()
        assert writer.order(folder, base / "whole-record", "run", call, "", 60)
        took_s = time.monotonic() - begin
        dice = random.Random(seed)
        verdicts: list[str] = []
        for number in range(tries):
            verdicts.append(await try_once(writer, base, number, dice, call, took_s))
        return verdicts
    finally:
        writer.close()


__all__ = ["kill_often", "many_patch"]
