"""Run the probes under a level, as this user or another, and write what they reached as a table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trust.probes import PROBES

HERE = Path(__file__).parent
SERVER = HERE.parents[1] / "server"
NOBODY = 65534
LEVELS = ("none", "partial", "full")
RUN_S = 100
BEGIN, END = "<!-- probes: written by tests/trust/test_probes.py -->", "<!-- /probes -->"

Found = Mapping[str, str]


def probe(level: str, *, user: int | None = None) -> dict[str, Any]:
    """What the runner says (`probe_runner.py`). `user`: another user id, with an interpreter that everybody can run."""
    base = Path(tempfile.mkdtemp(prefix="standfast-probes-"))
    try:
        words = [sys.executable]
        if user is not None:
            os.chown(base, user, user)
            words = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "/usr/bin/python3", "-B"]
        ran = subprocess.run(
            [*words, str(HERE / "probe_runner.py"), str(base), level, str(HERE / "probes.py")],
            env={"PATH": os.environ["PATH"], "HOME": str(base), "PYTHONPATH": str(SERVER)}, cwd="/",
            capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def table(found: Mapping[str, Found]) -> str:
    """Markdown: what each level lets through."""
    lines = [
        "| what a command tries | " + " | ".join(f"`{level}`" for level in found) + " |",
        "|---|" + "---|" * len(found),
    ]
    for name, (words, _) in PROBES.items():
        cells = [{"reached": "**reached**", "blocked": "blocked"}[results[name]] for results in found.values()]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written(text: str) -> dict[str, dict[str, str]]:
    """The table in a document, as level → probe → result."""
    rows = text[text.index(BEGIN) : text.index(END)].splitlines()
    names = {words: name for name, (words, _) in PROBES.items()}
    found: dict[str, dict[str, str]] = {level: {} for level in LEVELS}
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        if cells[0].strip() in names and len(cells) == 1 + len(LEVELS):
            for level, cell in zip(LEVELS, cells[1:], strict=True):
                found[level][names[cells[0].strip()]] = cell.strip("*| ")
    return found
