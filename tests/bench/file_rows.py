"""The patch engine on a big file."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from pathlib import Path

from bench.measure import Row, median, ratio_at_most
from standfast.files.patch_apply import Applied, apply_hunks
from standfast.files.patch_parse import Hunk, parse_patch
from standfast.files.refusal import Refusal
from standfast.files.text import read_text

LINES = 50_000
HUNKS = 200


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    lines = [f"    value_{n} = compute({n % 97}, {n % 13})" for n in range(LINES)]
    data = ("\n".join(lines) + "\n").encode()
    floor = median([_floor(data) for _ in range(15)])
    exact = median([_apply(data, _hunks(lines), conflict=False) for _ in range(9)])
    torn = median([_apply(data, _hunks(lines, every=10), conflict=True) for _ in range(9)])
    alike = [line if n % 2 else "    }" for n, line in enumerate(lines)]
    common = median([_apply("\n".join(alike).encode(), _anchored(alike), conflict=False) for _ in range(5)])
    what = f"patch of {HUNKS} hunks on {LINES:,} lines"
    yield Row(what, exact, "ms", "decode and split", floor, "≤ 6 ×", ratio_at_most(6))
    yield Row(f"{what}, a tenth in conflict", torn, "ms", "decode and split", floor, "≤ 14 ×", ratio_at_most(14))
    yield Row(f"{what}, half of them alike", common, "ms", "decode and split", floor, "≤ 14 ×", ratio_at_most(14))


def _hunks(lines: list[str], every: int = 0) -> tuple[Hunk, ...]:
    """As parsed. Every `every`-th one wants a line that is not there."""
    patch = ["*** Begin Patch", "*** Update File: big.py"]
    for n in range(HUNKS):
        at = n * (LINES // HUNKS) + 5
        old = f"{lines[at]} gone" if every and n % every == 0 else lines[at]
        patch += ["@@", f" {lines[at - 1]}", f"-{old}", f"+{lines[at]}  # changed", f" {lines[at + 1]}"]
    sections = parse_patch("\n".join([*patch, "*** End Patch", ""]))
    assert not isinstance(sections, Refusal)
    return sections[0].hunks


def _anchored(lines: list[str]) -> tuple[Hunk, ...]:
    """Hunks that change a line which stands everywhere, each behind an anchor that stands once."""
    return tuple(
        Hunk((lines[at],), (("-", lines[at + 1]), ("+", "    };"))) for at in range(1, LINES - 1, LINES // HUNKS)
    )


def _floor(data: bytes) -> float:
    begin = time.perf_counter()
    data.decode().split("\n")
    return (time.perf_counter() - begin) * 1000


def _apply(data: bytes, hunks: tuple[Hunk, ...], *, conflict: bool) -> float:
    begin = time.perf_counter()
    text = read_text(data)
    assert not isinstance(text, Refusal)
    applied = apply_hunks(text, hunks)
    took = (time.perf_counter() - begin) * 1000
    assert isinstance(applied, Applied) is not conflict
    return took
