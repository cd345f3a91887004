"""How commands are confined here: which level works (found by trying, never assumed), and a command put under it (I13, F24).

    full     bubblewrap: namespaces, an own view of the files, no network, and a system-call filter
    partial  Landlock and the same filter: nothing outside the workspace; but `.git` and editor settings are not apart
    none     neither works: a command runs with the person's own rights

On macOS `partial` is a Seatbelt profile (`seatbelt.py`), which nobody has tested on a Mac.

Nothing falls back by itself: a command planned for one level runs on that or not at all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import standfast
from standfast.process import bubblewrap, seatbelt, seccomp
from standfast.process.bubblewrap import Bounds
from standfast.process.confine import Confinement
from standfast.process.exposure import TOOL_ROOTS, Exposure, beneath, expose

Level = Literal["none", "partial", "full"]
LEVELS: tuple[Level, ...] = ("none", "partial", "full")
"""Weakest first."""
PROBE_S = 10.0
_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
)
_LISTS = ("system", "tools", "caches", "write", "hidden")
_ALSO_READ = ("/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu")
_TRY_LANDLOCK = (
    "import sys; sys.path.append(sys.argv[1]); from standfast.process import confine; "
    "confine.enter(confine.Confinement('partial', read=('/usr', '/lib', '/lib64', '/etc')))"
)


class Sandbox(NamedTuple):
    """What this machine enforces for this daemon's commands. Made by `detect`."""

    level: Level = "none"
    why: str = ""
    """Why it is not `full`, as a sentence; empty where it is."""
    program: str = ""
    exposure: Exposure | None = None
    memory: int = 0
    """Bytes of data that each process of a command may have; 0: no limit."""


UNCONFINED = Sandbox()


class Confined(NamedTuple):
    """A command as the supervisor is to start it."""

    argv: list[str]
    confinement: Confinement | None
    environment: dict[str, str]
    """What is different from the command's usual environment."""


def detect(exposure: Exposure, *, best: Level = "full") -> Sandbox:
    """Try what works, best first, by really doing it. Blocks for some ten milliseconds; `best` caps it."""
    if sys.platform == "darwin" and best != "none":
        return _try_seatbelt(exposure)
    reasons: list[str] = []
    if not sys.platform.startswith("linux") or not seccomp.available():
        return Sandbox("none", f"there is no confinement for {sys.platform} on {os.uname().machine} yet")
    if best == "full":
        program = bubblewrap.find_program()
        failed = "bubblewrap is not installed" if program is None else _try_bubblewrap(program, exposure)
        if program is not None and not failed:
            return Sandbox("full", "", program, exposure)
        reasons.append(failed)
    if best != "none":
        failed = _try_landlock()
        if not failed:
            return Sandbox("partial", "; ".join(reasons), "", exposure)
        reasons.append(failed)
    return Sandbox("none", "; ".join(reasons) or "it is switched off")


def confine(sandbox: Sandbox, argv: Sequence[str], bounds: Bounds, *, cwd: str, private: Path) -> Confined:
    """Put a command under the sandbox's level. `private`: a directory of the command's own, for what it keeps temporarily."""
    if sandbox.level == "none" or sandbox.exposure is None:
        return Confined(list(argv), None, {})
    exposure = sandbox.exposure
    caches = () if bounds.network else exposure.caches
    if sandbox.level == "full":
        words = bubblewrap.command_line(sandbox.program, exposure, bounds, argv, cwd=cwd)
        return Confined(words, Confinement("full", memory=sandbox.memory), {"TMPDIR": "/tmp"})
    temporary = str(private / "tmp")
    if sandbox.program == seatbelt.PROGRAM:
        words = seatbelt.command_line(exposure, bounds, argv, temporary=temporary)
        return Confined(words, Confinement("seatbelt", make=(temporary,), memory=sandbox.memory), {"TMPDIR": temporary})
    confinement = Confinement(
        "partial",
        sockets=bounds.network,
        read=_without(
            [*exposure.system, *_ALSO_READ, *exposure.tools, *caches, *bounds.read, *_resolver(bounds)], exposure.hidden
        ),
        write=_without(
            [bounds.workspace, temporary, *_DEVICES, *exposure.write, *bounds.write], exposure.hidden, [temporary]
        ),
        make=(temporary,),
        memory=sandbox.memory,
    )
    return Confined(list(argv), confinement, {"TMPDIR": temporary})


def below(level: str, minimum: str) -> bool:
    """Whether a level is weaker than the one that the person wants. An unknown word is the weakest."""
    ranks: dict[str, int] = {name: rank for rank, name in enumerate(LEVELS)}
    return ranks.get(level, 0) < ranks.get(minimum, 0)


def _without(paths: Sequence[str], hidden: Sequence[str], kept: Sequence[str] = ()) -> tuple[str, ...]:
    """Landlock only adds: a directory with something hidden beneath is given as its other entries, one by one. Nothing new can
    then be made in that directory itself, which is the safe side."""
    hidden = [path for path in hidden if os.path.lexists(path)]
    given = list(kept)
    waiting = [path for path in paths if path not in kept]
    while waiting:
        path = waiting.pop()
        if any(beneath(path, one) for one in hidden):
            continue
        if any(beneath(one, path) for one in hidden):
            waiting += [os.path.join(path, name) for name in os.listdir(path)]
        else:
            given.append(path)
    return tuple(given)


def _resolver(bounds: Bounds) -> tuple[str, ...]:
    return (os.path.realpath("/etc/resolv.conf"),) if bounds.network else ()


def _try_bubblewrap(program: str, exposure: Exposure) -> str:
    """Run `true` as any command would run. Why that failed, empty if it did not."""
    handle = os.memfd_create("filter", 0)
    try:
        os.write(handle, seccomp.program(sockets=True))
        os.lseek(handle, 0, os.SEEK_SET)
        bounds = Bounds("/tmp")
        words = bubblewrap.command_line(
            program, exposure, bounds, ["/bin/sh", "-c", "exit 0"], cwd="/", filter_fd=handle
        )
        return _run(words, "bubblewrap cannot make its namespaces here", pass_fds=(handle,))
    finally:
        os.close(handle)


def _try_landlock() -> str:
    root = str(Path(standfast.__file__).parent.parent)
    return _run([sys.executable, "-I", "-S", "-c", _TRY_LANDLOCK, root], "Landlock is not available here")


def _try_seatbelt(exposure: Exposure) -> Sandbox:
    """Its paths must be resolved ones: /etc and /tmp are links there."""
    fields = {name: tuple(map(os.path.realpath, getattr(exposure, name))) for name in _LISTS}
    exposure = exposure._replace(**fields)
    words = seatbelt.command_line(
        exposure, Bounds("/private/tmp"), ["/bin/sh", "-c", "exit 0"], temporary="/private/tmp"
    )
    failed = _run(words, "Seatbelt cannot confine here")
    if failed:
        return Sandbox("none", failed)
    return Sandbox("partial", "this is macOS, where the profile is not tested", seatbelt.PROGRAM, exposure)


def _run(words: list[str], failed: str, pass_fds: tuple[int, ...] = ()) -> str:
    try:
        ran = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={}, cwd="/",
            timeout=PROBE_S, pass_fds=pass_fds, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"{failed} ({type(error).__name__})"
    if ran.returncode == 0:
        return ""
    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"{failed} ({said[-1] if said else f'exit code {ran.returncode}'})"


__all__ = [
    "LEVELS",
    "TOOL_ROOTS",
    "UNCONFINED",
    "Bounds",
    "Confined",
    "Exposure",
    "Level",
    "Sandbox",
    "below",
    "confine",
    "detect",
    "expose",
]
