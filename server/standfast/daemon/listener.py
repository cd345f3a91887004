"""The daemon's socket: a Unix socket that only its owner can reach (ATK-01, 04); `peers.py` looks at who connects.

There is no other way in: no TCP, no HTTP.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from standfast.errors import StandfastError
from standfast.places import private_directory

BACKLOG = 128


@dataclass(slots=True)
class Listener:
    """A bound, listening socket and the file it has at its path."""

    path: Path
    sock: socket.socket
    inode: int

    def still_there(self) -> bool:
        """False when somebody (a cleaner of temporary files) removed or replaced the socket's file."""
        try:
            return self.path.lstat().st_ino == self.inode
        except OSError:
            return False

    def unlink(self) -> None:
        """Take our own file away, nobody else's. Who connected before stays in the accept queue."""
        if self.still_there():
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.unlink()
        self.sock.close()


def listen(path: Path) -> Listener:
    """Bind at `path`, in place of whatever is left there from a crash. Only the holder of the daemon's lock may call it.

    The file is made 0600 under another name and moved into place: there is no moment without a socket, nor one with a
    looser mode. Raises StandfastError (`PlaceNotPrivate`, `PlaceNotUsable`).
    """
    directory = _open_private(path.parent)
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(sock.fileno(), 0o600)  # Linux gives the file this mode, less the umask
            name = f".{secrets.token_hex(4)}"
            sock.bind(_beneath(directory, path.parent, name))
            os.rename(name, path.name, src_dir_fd=directory, dst_dir_fd=directory)
            os.chmod(path.name, 0o600, dir_fd=directory)
            inode = os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_ino
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            raise StandfastError(
                "PlaceNotUsable",
                f"The socket {path} cannot be made ({error.strerror}). No session is harmed. "
                "Make its directory writable, or set STANDFAST_HOME to a shorter or writable place.",
            ) from error
    finally:
        os.close(directory)
    sock.setblocking(False)
    return Listener(path, sock, inode)


def _open_private(directory: Path) -> int:
    """Open the socket's directory once and judge what was opened, so that it cannot be replaced in between (ATK-04)."""
    if not directory.exists():
        private_directory(directory)
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise StandfastError(
            "PlaceNotPrivate",
            f"{directory} is not a directory that can be trusted ({error.strerror}). Nothing was started. "
            "Remove it, or set STANDFAST_HOME to another place.",
        ) from error
    found = os.fstat(fd)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(fd)
        raise StandfastError(
            "PlaceNotPrivate",
            f"{directory} belongs to another user or is open to others. Nothing was started. "
            "Remove it, close it (chmod 700), or set STANDFAST_HOME to another place.",
        )
    return fd


def _beneath(fd: int, directory: Path, name: str) -> str:
    """A path to `name` in the directory that `fd` has open, whatever stands at `directory` by now."""
    return f"/proc/self/fd/{fd}/{name}" if sys.platform == "linux" else str(directory / name)
