"""Every MUST of recovery.md has an id, every id a test, and every id that a test cites stands in recovery.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMISES = re.findall(
    r"^- \*\*(R-RECOVER-\d+)\*\*(.*)$", (ROOT / "protocol-spec/recovery.md").read_text(), re.MULTILINE
)


def cited() -> set[str]:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return {promise for text in tests for promise in re.findall(r"requirement\(\"(R-RECOVER-\d+)\"\)", text)}


def test_ids_are_in_order_and_each_promises_something() -> None:
    assert [name for name, _ in PROMISES] == [f"R-RECOVER-{number + 1}" for number in range(len(PROMISES))]
    assert all("MUST" in sentence for _, sentence in PROMISES)


def test_every_promise_is_held_by_a_test_and_every_citation_is_a_promise() -> None:
    assert cited() - {name for name, _ in PROMISES} == set()
    assert {name for name, _ in PROMISES} - cited() == set()
