"""The long tier of tests/files/test_kill.py: 200 kills each, on a real disk. `pytest tests/full/test_files_kill_long.py`"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "files"))

from files_kills import kill_often


@pytest.mark.timeout(3600)
@pytest.mark.scenario("c05")
@pytest.mark.parametrize("seed", range(10))
async def test_a_patch_over_300_files_killed_at_random(seed: int, tmp_path: Path) -> None:
    assert "partial" in await kill_often(tmp_path, 20, {"tool": "apply_patch"}, seed=seed)


@pytest.mark.timeout(3600)
@pytest.mark.scenario("b02")
@pytest.mark.parametrize("seed", range(10))
async def test_a_write_of_30_mb_killed_at_random(seed: int, tmp_path: Path) -> None:
    verdicts = await kill_often(tmp_path, 20, {"tool": "write_file", "seed": 2}, seed=seed)
    assert set(verdicts) <= {"applied", "not_applied"}
