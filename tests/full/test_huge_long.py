"""The long tier of tests/long/test_huge.py: 36,000 events, 220 MB. `pytest tests/full/test_huge_long.py`"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "long"))

from test_huge import check


@pytest.mark.timeout(3600)
@pytest.mark.scenario("a32")
def test_a_session_of_36000_events_and_220_mb(tmp_path: Path) -> None:
    check(tmp_path, 36_000, 33_000, 20_000_000)
