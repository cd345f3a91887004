"""What of this machine a confined command sees, besides its workspace: the system, and in the home what tool chains need.

Everything else is not there (level `full`) or cannot be opened (`partial`): other projects, keys, the daemon's own places.
Found once, at the daemon's start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from standfast.process.mounts import aliases

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap",
          "/home/linuxbrew", "/run/current-system", "/var/lib/flatpak")  # fmt: skip
"""Read-only. What only root can read in /etc stays out, also for root."""
TOOLS = (
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/mise", ".local/share/pnpm",
    ".local/share/fnm", ".pyenv", ".rye", ".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".nvm", ".fnm",
    ".volta", ".asdf", ".nodenv", ".rbenv", ".rvm", ".sdkman", ".jenv", ".deno/bin", ".bun/bin", ".rustup", ".cargo/bin",
    ".cargo/env", "go/bin", ".goenv", ".dotnet", ".ghcup", ".juliaup", ".gitconfig",
    ".virtualenvs", ".local/share/virtualenvs", ".cache/pypoetry/virtualenvs", ".local/share/hatch", ".cache/pre-commit",
    ".cache/ms-playwright", ".cache/puppeteer", ".cache/node/corepack", ".local/share/nvm", ".config/nvm", ".elan", ".opam",
    ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".tool-versions",
)  # fmt: skip
"""Beneath the home, read-only: compilers, interpreters and what git must know. More by `[sandbox] read` and `write`."""
CACHES = (".cargo/registry", ".cargo/git", "go/pkg", ".m2/repository")
"""Beneath the home, read-only, and only for a command without the network: with it, a package manager fetches into a private
place, and would fail at one that it cannot write."""
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
_PARTS = frozenset({"lib", "libexec", "src"})
_MARKS = frozenset({"share", "libexec", "pyvenv.cfg", "conda-meta", "release", "pkg"})
"""An installation has one of each beside its `bin` (Unix, pyenv, venv, conda, a JDK, Go); a project seldom has."""
HOPS_MAX = 8
LINKS_MAX = 2000
"""Of one directory of the PATH."""


class Exposure(NamedTuple):
    """Absolute paths. The same for every command of this daemon."""

    home: str
    """Where it really lies."""
    home_link: str
    """By which other name the person calls it, empty if by none."""
    system: tuple[str, ...]
    tools: tuple[str, ...]
    """Read-only, beneath the home or elsewhere."""
    caches: tuple[str, ...]
    """Read-only, and not there for a command with the network."""
    write: tuple[str, ...]
    """What the person's settings add for writing (caches)."""
    hidden: tuple[str, ...]
    """Never there, wherever the workspace lies: the daemon's own places, secrets of the system and of the home."""


def expose(
    home: str, *, own: Iterable[str], path: str = "", read: Iterable[str] = (), write: Iterable[str] = ()
) -> Exposure:
    """Look at this machine. `own`: the daemon's places; `path`: the person's PATH; `read`, `write`: from their settings."""
    named, home = os.path.normpath(home), os.path.realpath(home)
    kept_out = [os.path.realpath(one) for one in own]
    kept_out += [other for one in kept_out for other in aliases(one)]
    system = tuple(one for one in SYSTEM if os.path.lexists(one))
    tools = [os.path.join(home, one) for one in TOOLS]
    tools += [_own_path(one, home) for one in read]
    entries = {os.path.realpath(one): one for one in path.split(":") if one}.values()
    entries = [home + one[len(named) :] if beneath(one, named) else one for one in entries]
    tools += [one for entry in entries for one in _programs(entry) if not _covers(one, (home, *kept_out))]
    return Exposure(
        home=home,
        home_link="" if named == home else named,
        system=system,
        tools=_fresh(tools, system),
        caches=_fresh((os.path.join(home, one) for one in CACHES), system),
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
    """What a directory of the PATH needs: itself, where it really lies, and what its programs belong to, where links lead out."""
    if not os.path.isabs(entry):
        return []
    found = [os.path.normpath(entry), os.path.realpath(entry), *installation(os.path.normpath(entry))]
    try:
        links = [one.path for one in os.scandir(entry) if one.is_symlink()][:LINKS_MAX]
    except OSError:
        return found
    within = tuple(f"{one}/" for one in (*SYSTEM, entry))
    for real in {os.path.realpath(end) for end in map(_end, links) if not end.startswith(within)}:
        found += [real, *installation(os.path.dirname(real))]
    return found


def _end(link: str) -> str:
    """Where a link leads by its own words; cheaper than `realpath`, for the hundreds that stay within the system."""
    for _ in range(HOPS_MAX):
        try:
            target = os.readlink(link)
        except OSError:
            break
        if "/" not in target:  # its neighbour is looked at by itself
            break
        link = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return link


def installation(directory: str) -> list[str]:
    """What a directory of programs is the `bin` of, as far as that shows that it is an installation and no project of somebody's."""
    real = os.path.realpath(directory)
    prefix = os.path.dirname(real)
    if os.path.basename(prefix) == ".local":  # everything of the person's own lies there too
        return []
    there = {name for name in (*_PARTS, *_MARKS) if os.path.lexists(os.path.join(prefix, name))}
    found = [prefix] if there & _PARTS and there & _MARKS else []
    return found + base_of(prefix)


def base_of(environment: str) -> list[str]:
    """The installation whose Python a virtual environment uses, if it is one."""
    try:
        with open(os.path.join(environment, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            lines = [line.partition("=") for line in file.read(64 * 1024).splitlines()]
    except OSError:
        return []
    return python_of(next((value.strip() for name, _, value in lines if name.strip() == "home"), ""))


def python_of(programs: str) -> list[str]:
    """The parts of the Python whose `bin` this is. Nothing if there is no standard library beside it: a repository may name any
    directory, and only a Python is shown."""
    prefix = os.path.dirname(os.path.realpath(programs)) if os.path.isabs(programs) else ""
    try:
        versions = [name for name in os.listdir(os.path.join(prefix, "lib")) if name.startswith("python3")]
    except OSError:
        return []
    if not any(os.path.isfile(os.path.join(prefix, "lib", name, "os.py")) for name in versions):
        return []
    return [os.path.join(prefix, name) for name in ("bin", "lib", "include") if prefix]


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
