"""A watcher of framed messages passing by: notes the few that decide how the byte pump ends. Pure; it changes no byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import cast

BODY_BYTES_MAX = 64 * 1024
"""Bodies above this are let pass unread: what is looked for is small."""
_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_END = re.compile(rb"\r?\n\r?\n")
_TELLING = (b"shutdown", b"exit", b"initialize")


@dataclass(slots=True)
class FrameWatcher:
    """Feed it the bytes from the editor, in any pieces."""

    saw_shutdown: bool = False
    saw_exit: bool = False
    initialize_id: int | str | None = None
    editor_pid: int | None = None
    """`initialize.processId`."""
    _held: bytearray = field(default_factory=bytearray)
    _skip: int = 0
    """Bytes of a body that is not looked into."""

    def feed(self, piece: bytes) -> None:
        if self._skip >= len(piece):
            self._skip -= len(piece)
            return
        self._held += piece[self._skip :]
        self._skip = 0
        while self._step():
            pass

    def _step(self) -> bool:
        """Take one whole frame off what is held; False when more bytes are needed."""
        end = _END.search(self._held)
        if end is None:
            if len(self._held) > BODY_BYTES_MAX:
                self._held.clear()  # not our protocol; the daemon will say so
            return False
        length = _LENGTH.search(self._held, 0, end.start() + 1)
        body = end.end()
        size = int(length[1]) if length and len(length[1]) < 19 else 0
        if size > BODY_BYTES_MAX:
            self._skip = max(0, size - (len(self._held) - body))
            del self._held[: body + size]
            return bool(self._held)
        if len(self._held) < body + size:
            return False
        self._note(bytes(self._held[body : body + size]))
        del self._held[: body + size]
        return True

    def _note(self, body: bytes) -> None:
        if not any(word in body for word in _TELLING):
            return
        try:
            found: object = json.loads(body)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            self._note_message(cast("dict[str, object]", found))

    def _note_message(self, message: dict[str, object]) -> None:
        match message.get("method"):
            case "shutdown":
                self.saw_shutdown = True
            case "exit":
                self.saw_exit = True
            case "initialize":
                ident, params = message.get("id"), message.get("params")
                self.initialize_id = ident if isinstance(ident, int | str) else None
                pid = cast("dict[str, object]", params).get("processId") if isinstance(params, dict) else None
                self.editor_pid = pid if isinstance(pid, int) and pid > 0 else None
            case _:
                pass
