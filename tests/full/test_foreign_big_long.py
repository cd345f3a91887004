"""The long tier of tests/foreign/test_big.py: 100 MB. `pytest tests/full/test_foreign_big_long.py`"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "foreign"))

from big import taken_in


@pytest.mark.timeout(3600)
def test_a_codex_file_of_100_mb(tmp_path: Path) -> None:
    assert taken_in(tmp_path, 100 * 1024 * 1024)["grownMb"] < 60
