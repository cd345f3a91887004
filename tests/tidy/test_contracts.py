"""What may import what is a test (style_guide.md 7): every contract holds, and each one catches a breach that is seeded here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = str(Path(sys.executable).with_name("lint-imports"))

BREACHES: dict[str, list[tuple[str, str]]] = {
    "layers": [
        ("events/types.py", "import standfast.run.loop"),
        ("session/sessions.py", "import standfast.editor.core"),
        ("cli/wording.py", "import standfast.daemon.lock"),
        ("helpers/__init__.py", ""),
    ],
    "cycles": [("run/told.py", "import standfast.run.loop")],
    "protocol-leaf": [("protocol/base.py", "import standfast.errors")],
    "protocol-users": [("session/sessions.py", "import standfast.protocol.objects")],
    "daemon-users": [("cli/door.py", "import standfast.daemon.spawn")],
    "journal-users": [
        ("run/loop.py", "import standfast.events.journal"),
        ("editor/core.py", "import standfast.events.journal"),
    ],
    "store-users": [
        ("editor/core.py", "import standfast.store.base"),
        ("run/loop.py", "import standfast.store.sqlite"),
    ],
    "blind-tools": [
        ("tools/run_command.py", "import standfast.events.journal"),
        ("files/merge.py", "import standfast.store.base"),
    ],
    "lsp": [("run/loop.py", "import pygls"), ("session/sessions.py", "from lsprotocol import types")],
    "sqlite": [("session/sessions.py", "import sqlite3"), ("projections/rows.py", "import aiosqlite")],
    "provider": [("run/loop.py", "import anthropic"), ("model/scripted.py", "import anthropic")],
    "pure": [
        ("session/recovery.py", "import asyncio"),
        ("run/context.py", "import time"),
        ("files/patch_apply.py", "import os"),
        ("projections/rows.py", "import pathlib"),
    ],
    "light": [("daemon/spawn.py", "import pydantic"), ("places.py", "import asyncio")],
}
"""contract id → (module, the line that breaks it)"""


def lint(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--config", str(root / "pyproject.toml"), "--no-cache", *options],
        cwd=root / "server", capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip


def test_every_contract_holds() -> None:
    ran = lint(ROOT)
    assert ran.returncode == 0, ran.stdout


def test_every_contract_has_a_seeded_breach() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {contract["id"] for contract in table["tool"]["importlinter"]["contracts"]} == set(BREACHES)


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [(contract, module, line) for contract, breaches in BREACHES.items() for module, line in breaches],
)
def test_a_breach_is_caught(tmp_path: Path, contract: str, module: str, line: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "server", tmp_path / "server", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "server" / "standfast" / module
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as text:
        text.write(f"\n{line}\n")
    ran = lint(tmp_path, "--contract", contract)
    assert ran.returncode == 1, ran.stdout
    assert "BROKEN" in ran.stdout or "missing" in ran.stdout.lower() or "not listed" in ran.stdout.lower(), ran.stdout
