"""The bubblewrap command line of a confined command (level `full`): what is there, what can be changed, which namespaces.

Later mounts lie over earlier ones, so the order here is the meaning: system, empty home and temporary directories, tool chains,
the workspace, in it what stays read-only, and last what must never be there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from standfast.process.confine import FILTER_FD
from standfast.process.exposure import Exposure, beneath
from standfast.process.placeholders import LOCK_FD

PROGRAMS = ("/usr/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""By absolute path only: a PATH can be changed by whoever may write in one of its directories."""
EMPTY = ("/tmp", "/var/tmp", "/run")
"""Fresh and private for each command."""


class Bounds(NamedTuple):
    """What one command may touch. Absolute, resolved paths that exist."""

    workspace: str
    network: bool = False
    read_only: tuple[str, ...] = ()
    """Beneath the workspace: git's own, and what starts programs."""
    read: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    """Of the read-only ones: those that the supervisor makes (`placeholders.py`)."""
    write: tuple[str, ...] = ()
    """Outside the workspace (the git directory of a linked worktree, for git itself)."""
    called: str = ""
    """By which other name the person calls the workspace, empty if by none."""


def find_program() -> str | None:
    """bubblewrap, if it is there, root's own and nobody else's to change."""
    for path in PROGRAMS:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022:
            return path
    return None


def command_line(
    program: str, exposure: Exposure, bounds: Bounds, argv: Sequence[str], *, cwd: str, filter_fd: int = FILTER_FD
) -> list[str]:
    """The words that run `argv` confined. Everything needed is in them: no file, no environment."""
    words = [program, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not bounds.network:
        words.append("--unshare-net")
    words += ["--cap-drop", "ALL", "--seccomp", str(filter_fd)]
    words += ["--sync-fd", str(LOCK_FD)] if bounds.stand_ins else []
    for path in exposure.system:
        within = os.path.islink(path) and any(beneath(os.path.realpath(path), one) for one in exposure.system)
        words += ["--symlink", os.readlink(path), path] if within else ["--ro-bind", path, path]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path in (*EMPTY, exposure.home):
        words += ["--tmpfs", path] if path != "/" else []
    if bounds.network:
        words += _each("--ro-bind", _name_service())
    words += _link(exposure.home, exposure.home_link, exposure.system)
    words += _each("--ro-bind", exposure.tools) + _each("--ro-bind", bounds.read)
    words += [] if bounds.network else _each("--ro-bind", exposure.caches)
    words += _each("--bind", exposure.write)
    words += ["--bind", bounds.workspace, bounds.workspace, *_each("--bind", bounds.write)]
    words += _link(
        bounds.workspace, bounds.called, (*exposure.system, *exposure.tools, exposure.home_link, bounds.workspace)
    )
    masked = _reachable(exposure, bounds)
    read_only = (*bounds.read_only, *bounds.stand_ins)
    pinned = parents((*read_only, *masked), bounds.workspace)
    words += [word for path, option in _by_depth(pinned, read_only) for word in (option, path, path)]
    for path in masked:
        words += ["--tmpfs", path, "--remount-ro", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    return [*words, "--chdir", cwd, "--", *argv]


def _link(path: str, called: str, there: Iterable[str]) -> list[str]:
    """Another name for a place, where nothing that is shown holds that name already."""
    return ["--symlink", path, called] if called and not any(one and beneath(called, one) for one in there) else []


def _each(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]


def parents(paths: Iterable[str], workspace: str) -> set[str]:
    """The directories between the workspace and these paths. Mounted on themselves they cannot be renamed, so that nobody puts
    a directory of their own in the place of a protected one's."""
    found: set[str] = set()
    for path in paths:
        parent = os.path.dirname(path)
        while parent.startswith(workspace + "/"):
            found.add(parent)
            parent = os.path.dirname(parent)
    return found


def _by_depth(pinned: set[str], read_only: Sequence[str]) -> list[tuple[str, str]]:
    """Outer directories first, so that inner mounts lie over them. Beneath something read-only nothing is opened again."""
    options = {path: "--bind" for path in pinned if not any(beneath(path, one) for one in read_only)}
    options |= dict.fromkeys(read_only, "--ro-bind")
    return sorted(options.items(), key=lambda pair: (pair[0].count("/"), pair[0]))


def _reachable(exposure: Exposure, bounds: Bounds) -> list[str]:
    """Hidden places that something visible would show. Others are not there anyway, and mounting over them would make them."""
    shown = [
        *exposure.system,
        *exposure.tools,
        *exposure.caches,
        *exposure.write,
        *bounds.read,
        *bounds.write,
        bounds.workspace,
    ]
    return [path for path in exposure.hidden if any(beneath(path, one) for one in shown) and os.path.lexists(path)]


def _name_service() -> list[str]:
    """Where /etc/resolv.conf leads, if out of /etc: without it no name is found."""
    real = os.path.realpath("/etc/resolv.conf")
    return [] if real.startswith("/etc/") or not os.path.exists(real) else [real]
