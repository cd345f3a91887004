"""Want of file descriptors or of memory: it says nothing of the file or process that was asked for (F20).

Whoever takes an OSError for an answer ("it is not there", "it has ended") lets these through first: taken for answers, they would
make a living command look lost, a changed file trusted, and a stranger a friend. Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import errno
import os

from standfast.errors import StandfastError

DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
MEMORY = frozenset({errno.ENOMEM})
NO_THREAD = "can't start new thread"
"""CPython's words where the system refuses one: there is no memory for its stack, or there are too many."""
KEPT = "Everything stored before is safe; what was being done was not begun or is looked at again."


def let_through(error: OSError) -> None:
    """Raise the error again if it is such a want."""
    if error.errno in DESCRIPTORS or error.errno in MEMORY:
        raise error


def none_left() -> bool:
    """Whether no file can be opened now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in DESCRIPTORS
    return False


def want_of(error: BaseException) -> StandfastError | None:
    """The error that a person meets for it (`TooManyOpenFiles`, `OutOfMemory`); None for any other error."""
    if isinstance(error, OSError) and error.errno in DESCRIPTORS:
        return StandfastError(
            "TooManyOpenFiles",
            f"No more files can be opened ({error.strerror}). {KEPT} "
            "Close windows or commands that are not needed, or raise the limit (`ulimit -n`) and restart the daemon; then go on.",
        )
    threads = isinstance(error, RuntimeError) and str(error) == NO_THREAD
    if threads or isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in MEMORY):
        return StandfastError(
            "OutOfMemory", f"There is not enough memory. {KEPT} End what needs much of it, then go on."
        )
    return None
