"""`standfast demo --json --seed N` for 20 seeds in a row: no torn file, no wrong verdict (issue A "What must be shown" 2)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("seed", range(20))
def test_every_seed_comes_out_right(seed: int) -> None:
    words = [sys.executable, "-P", "-m", "standfast", "demo", "--json", "--seed", str(seed)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=110)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    facts = json.loads(ran.stdout)
    assert facts["ok"]
    assert not facts["torn"]
    assert all(kill["agrees"] and kill["pidBefore"] != kill["pidAfter"] for kill in facts["kills"])
