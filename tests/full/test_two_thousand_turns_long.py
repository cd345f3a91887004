"""The long tier of tests/long/test_two_thousand_turns.py. `pytest tests/full/test_two_thousand_turns_long.py`"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "long"))

from test_two_thousand_turns import many_turns


@pytest.mark.timeout(3600)
async def test_two_thousand_turns(tmp_path: Path) -> None:
    await many_turns(tmp_path, 2000)
