"""The keys: a file that only its owner can read, or the daemon's environment, read once and taken out of it (design.md, I12).

A key never appears in a repr, a message or a log; `scrub` takes it out of text that came from outside.
The functions that touch the file block for a moment: call them in a thread.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, cast

import orjson

from standfast.errors import StandfastError

KEY_VARIABLE = "ANTHROPIC_API_KEY"
KEY_LENGTH_MAX = 4096
FILE_BYTES_MAX = 1 << 20
PROVIDERS = ("anthropic",)


class Credentials:
    """The keys of one store. Thread safe as far as needed: values are replaced whole."""

    def __init__(self, path: Path, *, from_environment: str | None = None) -> None:
        self._path = path
        self._environment = from_environment
        self._keys: dict[str, str] = {}

    @classmethod
    def take(cls, path: Path, environ: MutableMapping[str, str]) -> Credentials:
        """Take the key out of the environment, so that no command inherits it. The file is not read yet: see `reload`."""
        key = environ.pop(KEY_VARIABLE, "").strip()
        return cls(path, from_environment=key if is_key(key) else None)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{name}: {self.source(name)}' for name in PROVIDERS)})"

    def key(self, provider: str = "anthropic") -> str | None:
        """The key: the file's, else the environment's. Touches nothing."""
        return self._keys.get(provider) or (self._environment if provider == "anthropic" else None)

    def source(self, provider: str = "anthropic") -> str:
        """Where the key comes from, for `status`: `file`, `environment` or `none`."""
        if provider in self._keys:
            return "file"
        return "environment" if self.key(provider) else "none"

    def scrub(self, text: str) -> str:
        """`text` without any key that we know: servers and proxies like to quote what they refuse."""
        for key in (*self._keys.values(), self._environment):
            if key:
                text = text.replace(key, "[key]")
        return text

    def reload(self) -> None:
        """Read the file again (another process may have run `login`). Raises StandfastError `CredentialsNotUsable`."""
        self._keys = self._read()

    def set(self, provider: str, key: str | None) -> None:
        """Keep a key, or remove it with None. Durable when it returns; the file is replaced whole.

        Raises StandfastError: `ProviderUnknown`, `KeyInvalid`, `CredentialsNotUsable`. The old key stays then.
        """
        if provider not in PROVIDERS:
            raise StandfastError(
                "ProviderUnknown",
                f"There is no provider {provider!r}; known: {', '.join(PROVIDERS)}. Nothing was changed.",
            )
        keys = self._read()
        if key is None:
            keys.pop(provider, None)
            self._environment = None
        else:
            keys[provider] = checked_key(key)
        self._write(keys)
        self._keys = keys

    def _read(self) -> dict[str, str]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._not_usable(error.strerror or "it cannot be opened") from None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                raise self._not_usable("it is not a file of yours")
            if found.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
            raw = file.read(FILE_BYTES_MAX)
        try:
            data: Any = orjson.loads(raw)
            return {str(name): checked_key(entry["key"]) for name, entry in cast("dict[str, Any]", data).items()}
        except (ValueError, TypeError, KeyError, AttributeError, StandfastError):
            raise self._not_usable("its content is not what Standfast writes") from None

    def _write(self, keys: dict[str, str]) -> None:
        """A fixed temporary name, so that a crash leaves at most one such file and the next `set` replaces it."""
        temporary = self._path.with_name(self._path.name + ".new")
        data = orjson.dumps({name: {"key": key} for name, key in keys.items()})
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            sync_directory(self._path.parent)
        except OSError as error:
            raise self._not_usable(f"it cannot be written: {error.strerror}") from None

    def _not_usable(self, why: str) -> StandfastError:
        return StandfastError(
            "CredentialsNotUsable",
            f"The credentials file {self._path} cannot be used ({why}). No key was read or changed. "
            "Remove the file and run `standfast login` again.",
        )


def is_key(text: str) -> bool:
    """Whether this can be a key: visible ASCII without spaces, so that it fits into a header."""
    return 0 < len(text) <= KEY_LENGTH_MAX and all("!" <= char <= "~" for char in text)


def checked_key(text: str) -> str:
    """The key without the white space around it. Raises StandfastError `KeyInvalid`, which does not show it."""
    key = text.strip()
    if not is_key(key):
        raise StandfastError(
            "KeyInvalid",
            "That is not a key: a key is one word of visible ASCII characters. Nothing was changed. Copy it again, whole.",
        )
    return key


def sync_directory(path: Path) -> None:
    """Make a rename in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
