"""What the commands print: rich in a terminal, plain when piped; JSON for scripts. Errors are a sentence, never a traceback."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from standfast.errors import StandfastError

DONE = 0
FAILED = 1
"""The work itself did not succeed: a run failed, a patch is in conflict, the doctor found damage."""
ERROR = 2
"""The command could not be carried out, or was not understood."""
NO_DAEMON = 3
"""`daemon status`: none is running."""
INTERRUPTED = 130

PIPED_WIDTH = 500
"""Columns where there is no terminal: a line of a table stays a line."""

if hasattr(sys.stdout, "reconfigure"):
    cast("Any", sys.stdout).reconfigure(line_buffering=True)  # whoever reads a pipe sees each line when it happens
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def complain(error: StandfastError, *, as_json: bool = False) -> None:
    """Say what happened; with `--json` to the script too."""
    if as_json:
        print_json({"error": {"reason": error.reason, "message": error.message}})
    err.print(Text.assemble(("standfast: ", "bold red"), plain(error.message)))


def plain(text: str) -> str:
    """Make control and bidirectional characters visible: what a model or a file says must not steer the terminal."""
    return "".join(char if char in "\n\t" or _printable(char) else f"\\u{ord(char):04x}" for char in text)


def _printable(char: str) -> bool:
    return char.isprintable() and char not in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
