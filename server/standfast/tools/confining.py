"""A tool's command under the sandbox: its bounds, what that means to people, and how a refusal by the sandbox is told (issue G).

A wider permission is part of the call: `network` and `outside_sandbox` are arguments that the model gives and the person sees as
risks. Nothing is ever tried again with fewer bounds by itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from standfast.process.exposure import base_of
from standfast.process.launch import Commands, stand_ins
from standfast.process.record import Spec
from standfast.process.sandbox import UNCONFINED, Bounds, confine
from standfast.tools.base import Outcome, ToolContext
from standfast.tools.git_places import executable_parts, git_directory
from standfast.tools.protected_places import protected

OUTSIDE = (
    "It runs outside the sandbox, with your own rights: it can read and change all that you can, and reach the network."
)
NETWORK = "It gets the network: what it reads can leave this machine, and others can reach what it serves."
_REFUSED = re.compile(
    r"read-only file system|operation not permitted|permission denied|EROFS|EPERM|EACCES|network is unreachable"
    r"|could not resolve|name resolution|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|connection refused|ECONNREFUSED"
    r"|failed to connect|could(?:n't| not) connect|unable to access|no matching distribution"
    r"|address family not supported|no such file or directory|bad system call",
    re.IGNORECASE,
)
"""What programs say where a sandbox stops them; also for other reasons, so it is told as a possibility."""
_NO_MEMORY = re.compile(r"cannot allocate memory|MemoryError|bad_alloc|out of memory|ENOMEM", re.IGNORECASE)
ENVIRONMENTS = (".venv", "venv", "env")
"""Where a Python project has its virtual environment."""
_SETUP_FAILED = re.compile(r"\A\(?bwrap: ")


class Wish(NamedTuple):
    """How much wider than usual a command is to run."""

    network: bool = False
    outside: bool = False


class Bound(NamedTuple):
    """What a wish comes to here."""

    level: str
    network: bool
    risks: tuple[str, ...]
    words: str
    """For the summary, before the command; empty where nothing is wider than usual."""
    memory: int = 0
    """Bytes that each process may have; 0: no limit."""


def bound(commands: Commands, wish: Wish) -> Bound:
    """What a command with this wish runs under, and what the person must know of it. Pure."""
    level = commands.sandbox.level
    if level == "none":
        return Bound("none", True, (), "")
    if wish.outside:
        return Bound("none", True, (OUTSIDE,), " outside the sandbox")
    if wish.network and not commands.network:
        return Bound(level, True, (NETWORK,), " with the network", commands.sandbox.memory)
    return Bound(level, commands.network, (), "", commands.sandbox.memory)


async def confined(
    commands: Commands,
    spec: Spec,
    environment: Mapping[str, str],
    ctx: ToolContext,
    under: Bound,
    *,
    for_git: bool = False,
) -> tuple[Spec, dict[str, str]]:
    """The spec and environment of a command under its bounds. `for_git`: git itself, which changes its own directory but not
    what makes it start programs.
    """
    sandbox = commands.sandbox if under.level != "none" else UNCONFINED
    if sandbox.level == "none":
        return spec, dict(environment)
    workspace = await asyncio.to_thread(ctx.workspace.resolve)
    home = sandbox.exposure.home if sandbox.exposure else ""
    bounds, aside = await asyncio.to_thread(_bounds, workspace, home, for_git=for_git)
    bounds = bounds._replace(network=under.network, called="" if ctx.workspace == workspace else str(ctx.workspace))
    done = confine(sandbox, spec.argv, bounds, cwd=spec.cwd, private=ctx.spool / ctx.call_id)
    spec = spec._replace(argv=done.argv, confinement=done.confinement)
    if sandbox.level == "full":
        lock = stand_ins(ctx.spool) / sha256(bytes(workspace)).hexdigest()[:32]
        spec = spec._replace(
            placeholders=bounds.stand_ins, placeholder_lock=str(lock), set_aside=() if spec.background else aside
        )
    return spec, {**environment, **done.environment}


def _bounds(workspace: Path, home: str, *, for_git: bool) -> tuple[Bounds, tuple[str, ...]]:
    """What may be touched in this workspace, and what is set aside if it is made (by git itself nothing: that was committed)."""
    git = git_directory(workspace)
    if for_git:
        parts = executable_parts(git) if git is not None else ()
        return Bounds(str(workspace), read_only=parts, write=_elsewhere(git, workspace)), ()
    kept = protected(workspace, home)
    read = (*_elsewhere(git, workspace), *_pythons(workspace))
    return Bounds(str(workspace), read_only=kept.read_only, stand_ins=kept.stand_ins, read=read), kept.set_aside


def _pythons(workspace: Path) -> tuple[str, ...]:
    """The installations that the workspace's virtual environments stand on, wherever the person put those."""
    return tuple(one for name in ENVIRONMENTS for one in base_of(str(workspace / name)))


def _elsewhere(git: Path | None, workspace: Path) -> tuple[str, ...]:
    return () if git is None or git.is_relative_to(workspace) else (str(git),)


def explained(outcome: Outcome, under: Bound, *, can_widen: bool = True) -> Outcome:
    """A command's outcome, with a word about the sandbox where that may be what stopped it. Pure."""
    if under.level == "none" or outcome.status != "error" or outcome.exit_code is None:
        return outcome
    if _SETUP_FAILED.match(outcome.content):
        text = f"{outcome.content}\n[The sandbox could not be set up. Nothing of the command ran; it was not tried without.]"
        return replace(outcome, content=text, reason="SandboxFailed")
    if under.memory and _NO_MEMORY.search(outcome.content):
        limit = f"[Each process may have {under.memory // 1024**2} MiB here (the person's `[sandbox] memory_mb`).]"
        return replace(outcome, content=f"{outcome.content}\n{limit}")
    if not _REFUSED.search(outcome.content):
        return outcome
    return replace(outcome, content=f"{outcome.content}\n{_hint(under, can_widen=can_widen)}")


def _hint(under: Bound, *, can_widen: bool) -> str:
    git = ", in it `.git` and files that start programs cannot" if under.level == "full" else ""
    words = [
        f"[It ran in the sandbox ({under.level}{'' if under.network else ', no network'}): only the workspace can be changed{git}; "
        "the home is empty but for tool chains."
    ]
    if not can_widen:
        return f"{words[0]}]"
    words.append("If that is what stopped it, change git by the `git` tool, or ask the person by calling again with")
    ways: Sequence[str] = () if under.network else ("network: true for the network",)
    words.append(" or ".join((*ways, "outside_sandbox: true to run without")) + ".]")
    return " ".join(words)
