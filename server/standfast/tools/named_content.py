"""The content of the files that a command names, so that an answer holds for what it was given for (ATK-22, ATK-28).

`allowSession` for `./build.sh` is not one for another `build.sh`. Words are looked up as file names and nothing more: no shell text is
read to judge what is safe, and a name that is missed only means that the answer is for the command's text alone, as it says.
"""

from __future__ import annotations

import os
import re
import stat
from hashlib import file_digest
from pathlib import Path

from standfast.shortage import let_through

WORDS_MAX = 200
BYTES_MAX = 4 * 1024 * 1024
"""Of one file; a longer one counts by its size and time of change."""
_BETWEEN = re.compile(r"[\s'\"`;|&<>()={},:]+")


def named_content(directory: Path, command: str) -> tuple[tuple[str, str], ...]:
    """(word, content hash) of each word that is a file's name, seen from `directory`. Blocking; what cannot be read is passed over."""
    found: list[tuple[str, str]] = []
    for word in dict.fromkeys(_BETWEEN.split(command)[:WORDS_MAX]):
        if word and len(word) < 4096 and (content := _content(directory / word)) is not None:
            found.append((word, content))
    return tuple(found)


def _content(path: Path) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        return None
    except OSError as error:
        let_through(error)
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return None
    with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor
        if found.st_size > BYTES_MAX:
            return f"{found.st_size} bytes, {found.st_mtime_ns}"
        return file_digest(file, "sha256").hexdigest()
