"""Where things lie (design.md "Command line, places and tools"): XDG, or all under STANDFAST_HOME.

Light on purpose: `standfast lsp` imports it before anything else is loaded.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from standfast.errors import StandfastError

SOCKET_PATH_MAX = 100
"""Bytes; the kernel's limit for a Unix socket's path is about 107."""


@dataclass(frozen=True, slots=True)
class Places:
    config: Path
    """config.toml, the user's own; nothing in a project replaces it."""
    state: Path
    """The store, the lock, the log, credentials, command records."""
    runtime: Path
    """The socket's usual directory."""
    socket_name: str = "daemon.sock"

    @property
    def store(self) -> Path:
        return self.state / "standfast.db"

    @property
    def lock(self) -> Path:
        return self.state / "daemon.lock"

    @property
    def log(self) -> Path:
        return self.state / "log" / "daemon.log"

    @property
    def credentials(self) -> Path:
        return self.state / "credentials.json"

    @property
    def commands(self) -> Path:
        return self.state / "commands"

    @property
    def transcripts(self) -> Path:
        return self.state / "transcripts"

    @property
    def backups(self) -> Path:
        return self.state / "backups"

    @property
    def socket(self) -> Path:
        """The socket's path: one per store, and always short enough, else in a directory of the user's own in the temporary
        directory."""
        usual = self.runtime / self.socket_name
        if len(os.fsencode(usual)) <= SOCKET_PATH_MAX:
            return usual
        return private_temporary() / _name_for(self.state)


def _name_for(state: Path) -> str:
    """A socket's name in a directory that several stores share. No secret, so the checksum that is loaded fastest will do."""
    return f"{crc32(os.fsencode(state)):08x}.sock"


def private_temporary() -> Path:
    """The user's own directory in the temporary directory (ATK-04: a real directory, ours, closed to others)."""
    import tempfile  # a tenth of what `standfast lsp` loads, and needed only here

    return Path(tempfile.gettempdir()) / f"standfast-{os.getuid()}"


def find_places(environ: dict[str, str] | None = None) -> Places:
    """Read the places from the environment. Creates nothing."""
    env = os.environ if environ is None else environ
    home = env.get("STANDFAST_HOME")
    if home:
        base = Path(home).absolute()
        return Places(base / "config.toml", base / "state", base / "run")
    user = Path(env.get("HOME") or Path("~").expanduser())
    config = _absolute(env.get("XDG_CONFIG_HOME")) or user / ".config"
    state = _absolute(env.get("XDG_STATE_HOME")) or user / ".local" / "state"
    runtime = _absolute(env.get("XDG_RUNTIME_DIR"))
    return Places(
        config / "standfast" / "config.toml",
        state / "standfast",
        runtime / "standfast" if runtime else private_temporary(),
        _name_for(state),  # this directory serves every store of the user's
    )


def _absolute(value: str | None) -> Path | None:
    """XDG: a relative path counts as unset."""
    return Path(value) if value and Path(value).is_absolute() else None


def private_directory(path: Path) -> Path:
    """Make a directory that only its owner can enter, or check that it is one.

    Raises StandfastError (`PlaceNotPrivate`) for a link, another owner, or a place that cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise StandfastError(
            "PlaceNotUsable",
            f"{path} cannot be used ({error.strerror}). Nothing was changed. Make it writable, or set STANDFAST_HOME.",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StandfastError(
            "PlaceNotPrivate",
            f"{path} is not a directory of yours. Nothing was started. Remove it, or set STANDFAST_HOME to another place.",
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path
