"""What of this machine a confined command sees, besides its workspace: the system, and in the home what tool chains need.

Everything else is not there (level `full`) or cannot be opened (`partial`): other projects, keys, the daemon's own places.
Found once, at the daemon's start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap",
          "/home/linuxbrew", "/run/current-system", "/var/lib/flatpak")  # fmt: skip
"""Read-only. What only root can read in /etc stays out, also for root."""
TOOLS = (
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/mise", ".local/share/pnpm",
    ".local/share/fnm", ".pyenv", ".rye", ".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".nvm", ".fnm",
    ".volta", ".asdf", ".nodenv", ".rbenv", ".rvm", ".sdkman", ".jenv", ".deno/bin", ".bun/bin", ".rustup", ".cargo/bin",
    ".cargo/env", ".cargo/registry", ".cargo/git", "go/bin", "go/pkg", ".goenv", ".dotnet", ".ghcup", ".juliaup", ".gitconfig",
    ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".tool-versions",
)  # fmt: skip
"""Beneath the home, read-only: compilers, interpreters and what git must know. More by `[sandbox] read` and `write`."""
TOOL_ROOTS = (
    "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "NVM_DIR", "VOLTA_HOME", "RUSTUP_HOME", "GOROOT", "JAVA_HOME", "GEM_HOME",
)  # fmt: skip
"""Variables by which a person says where a tool chain is, wherever that lies. CARGO_HOME is none: it holds credentials."""
ACCOUNTS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gh", ".config/gcloud", ".config/op", ".password-store",
    ".netrc", ".git-credentials", ".config/git/credentials", ".pypirc", ".npmrc", ".pgpass", ".my.cnf", ".vault-token",
    ".terraform.d", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".cargo/credentials.toml",
    ".cargo/credentials", ".gem/credentials", ".bash_history", ".zsh_history", ".python_history", ".claude", ".codex",
)  # fmt: skip
"""Beneath the home: taken away even where the home itself is the workspace."""
_ETC_DEPTH = 2


class Exposure(NamedTuple):
    """Absolute paths. The same for every command of this daemon."""

    home: str
    system: tuple[str, ...]
    tools: tuple[str, ...]
    """Read-only, beneath the home or elsewhere."""
    write: tuple[str, ...]
    """What the person's settings add for writing (caches)."""
    hidden: tuple[str, ...]
    """Never there, wherever the workspace lies: the daemon's own places, secrets of the system and of the home."""


def expose(
    home: str, *, own: Iterable[str], path: str = "", read: Iterable[str] = (), write: Iterable[str] = ()
) -> Exposure:
    """Look at this machine. `own`: the daemon's places; `path`: the person's PATH; `read`, `write`: from their settings."""
    home = os.path.realpath(home)
    kept_out = [os.path.realpath(one) for one in own]
    system = tuple(one for one in SYSTEM if os.path.lexists(one))
    tools = [os.path.join(home, one) for one in TOOLS]
    tools += [_own_path(one, home) for one in read]
    tools += [one for entry in path.split(":") for one in _programs(entry) if not _covers(one, (home, *kept_out))]
    return Exposure(
        home=home,
        system=system,
        tools=_fresh(tools, system),
        write=_fresh([_own_path(one, home) for one in write], ()),
        hidden=(*kept_out, *(os.path.join(home, name) for name in ACCOUNTS), *_for_root_only()),
    )


def beneath(path: str, above: str) -> bool:
    """Whether a path is another or lies in it. By the words only: both are absolute and resolved."""
    return path == above or path.startswith(above if above.endswith("/") else f"{above}/")


def _own_path(path: str, home: str) -> str:
    """A path as people write it in their settings: absolute, or beneath the home (`~/…` or plain)."""
    return os.path.normpath(os.path.join(home, path.removeprefix("~/")))


def _programs(entry: str) -> list[str]:
    """What a directory of the PATH needs: itself, and where it is the `bin` of an installation, all of that."""
    if not os.path.isabs(entry):
        return []
    prefix = os.path.dirname(os.path.normpath(entry))
    whole = all(os.path.isdir(os.path.join(prefix, name)) for name in ("bin", "lib", "share"))
    return [entry, prefix] if whole else [entry]


def _covers(path: str, others: Iterable[str]) -> bool:
    """Whether giving `path` would give one of the others."""
    real = os.path.realpath(path)
    return any(beneath(other, real) for other in others)


def _fresh(paths: Iterable[str], covered: tuple[str, ...]) -> tuple[str, ...]:
    """Those that exist and are not given already, the shorter ones first."""
    kept: list[str] = []
    for path in sorted({one for one in paths if os.path.exists(one)}):
        if not any(beneath(path, other) for other in (*covered, *kept)):
            kept.append(path)
    return tuple(kept)


def _for_root_only() -> list[str]:
    """What others may not read in /etc: as root a command could, since it would own it (shadow, host keys, private keys)."""
    return [] if os.geteuid() else _closed("/etc", _ETC_DEPTH)


def _closed(directory: str, depth: int) -> list[str]:
    found: list[str] = []
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return found
    for entry in entries:
        if entry.is_symlink():
            continue
        if not entry.stat(follow_symlinks=False).st_mode & 0o004:
            found.append(entry.path)
        elif depth > 1 and entry.is_dir():
            found += _closed(entry.path, depth - 1)
    return found
