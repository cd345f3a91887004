"""The daemon's log: one JSON object a line at `places.log`, rotated. Events by name, ids and counts; never message bodies."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from standfast.places import private_directory

BYTES_MAX = 4 << 20
KEPT = 3
QUIET = ("pygls", "lsprotocol", "asyncio", "httpx", "httpx2", "httpcore", "anthropic", "aiosqlite")
"""Libraries that would log what they carry, at INFO or DEBUG (ATK-38)."""


class PrivateRotation(RotatingFileHandler):
    """Makes each file 0600 from its first moment and never follows a link planted at its path."""

    def _open(self) -> Any:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self.baseFilename, flags, 0o600)
        os.fchmod(fd, 0o600)  # one that was loosened is closed again (e14)
        return os.fdopen(fd, "a", encoding="utf-8")


def open_log(path: Path) -> None:
    """Send all loggers there. A log that cannot be written is done without."""
    handler: logging.Handler
    try:
        private_directory(path.parent)
        handler = PrivateRotation(path, maxBytes=BYTES_MAX, backupCount=KEPT)
    except (OSError, RuntimeError):
        handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(
            ("timestamp", "levelname", "name", "message"),
            rename_fields={"levelname": "level", "name": "logger", "message": "event", "exc_info": "exception"},
            timestamp=True,
            rename_fields_keep_missing=False,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False  # a full disk must not turn each log line into a traceback
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
