"""Open editor documents as the tools see them: an unsaved buffer is the truth for its file (design.md "Files", R11).

The implementation lies in `editor/`; this is the door through which `tools/` use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Buffer:
    """The newest open text of a file over all connections."""

    uri: str
    version: int
    text: str
    dirty: bool
    """Its text is not what the disk has."""
    disputed: bool = False
    """Two connections hold different unsaved text: a write is a `dirty_buffer` conflict."""
    editable: bool = True
    """The client can `workspace/applyEdit`."""


@dataclass(frozen=True, slots=True)
class BufferWrite:
    """What became of an edit sent to a buffer. `unknown`: no report in time; never repeated."""

    outcome: Literal["applied", "refused", "unknown"]
    text: str | None = None
    """The buffer's text afterwards, where known."""


class Buffers(Protocol):
    def get(self, path: Path) -> Buffer | None:
        """The open buffer of an absolute path, None if no connection has it open."""
        ...

    async def write(self, buffer: Buffer, text: str) -> BufferWrite:
        """Send the change from `buffer.text` to `text` by versioned workspace/applyEdit and wait for its confirmation:
        the edit merged into the text that the editor reports next changes nothing; 2 s at most after the answer."""
        ...


class NoBuffers:
    """Nothing is open (command line, tests)."""

    def get(self, path: Path) -> Buffer | None:
        return None

    async def write(self, buffer: Buffer, text: str) -> BufferWrite:
        return BufferWrite("refused")
