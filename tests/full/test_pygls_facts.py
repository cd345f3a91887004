"""What pygls does today, each fact by a script of its own (tests/wire/pygls_facts/README.md). One that changed is good news, and fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FACTS = Path(__file__).parents[1] / "wire/pygls_facts"
SCRIPTS = sorted(path for path in FACTS.glob("*.py") if path.stem != "talk")


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_it_is_still_so(script: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nLook whether our own edge is still needed there."
