"""What all tests share: the folder `tests/` on the path, so that `fake_api` can be imported by each."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
