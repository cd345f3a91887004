"""What a script says next: some text, and the calls it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """One reply. Without a call the turn ends."""

    text: str
    tool: str | None = None
    args: dict[str, Any] | None = None
