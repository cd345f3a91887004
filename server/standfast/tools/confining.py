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

from standfast.process.launch import Commands
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
    r"|address family not supported|no such file or directory|bad system call",
    re.IGNORECASE,
)
"""What programs say where a sandbox stops them; also for other reasons, so it is told as a possibility."""
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


def bound(commands: Commands, wish: Wish) -> Bound:
    """What a command with this wish runs under, and what the person must know of it. Pure."""
    level = commands.sandbox.level
    if level == "none":
        return Bound("none", True, (), "")
    if wish.outside:
        return Bound("none", True, (OUTSIDE,), " outside the sandbox")
    if wish.network and not commands.network:
        return Bound(level, True, (NETWORK,), " with the network")
    return Bound(level, commands.network, (), "")


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
    look = _git_bounds if for_git else _command_bounds
    bounds, stand_ins = await asyncio.to_thread(look, workspace, under.network)
    done = confine(sandbox, spec.argv, bounds, cwd=spec.cwd, private=ctx.spool / ctx.call_id)
    spec = spec._replace(argv=done.argv, confinement=done.confinement)
    if stand_ins and sandbox.level == "full":
        lock = ctx.spool.with_name("stand-ins") / sha256(bytes(workspace)).hexdigest()[:32]
        spec = spec._replace(placeholders=stand_ins, placeholder_lock=str(lock))
    return spec, {**environment, **done.environment}


def _command_bounds(workspace: Path, network: bool) -> tuple[Bounds, tuple[str, ...]]:  # noqa: FBT001 - called by position in a thread
    """What a command may touch in this workspace, and the stand-ins to be made for it."""
    kept = protected(workspace)
    read_only = tuple(dict.fromkeys((*kept.read_only, *kept.stand_ins)))
    git = _elsewhere(git_directory(workspace), workspace)
    return Bounds(str(workspace), network=network, read_only=read_only, read=git), kept.stand_ins


def _git_bounds(workspace: Path, network: bool) -> tuple[Bounds, tuple[str, ...]]:  # noqa: FBT001
    """The same for git itself."""
    git = git_directory(workspace)
    parts = executable_parts(git) if git is not None else ()
    return Bounds(str(workspace), network=network, read_only=parts, write=_elsewhere(git, workspace)), ()


def _elsewhere(git: Path | None, workspace: Path) -> tuple[str, ...]:
    return () if git is None or git.is_relative_to(workspace) else (str(git),)


def explained(outcome: Outcome, under: Bound, *, can_widen: bool = True) -> Outcome:
    """A command's outcome, with a word about the sandbox where that may be what stopped it. Pure."""
    if under.level == "none" or outcome.status != "error" or outcome.exit_code is None:
        return outcome
    if _SETUP_FAILED.match(outcome.content):
        text = f"{outcome.content}\n[The sandbox could not be set up. Nothing of the command ran; it was not tried without.]"
        return replace(outcome, content=text, reason="SandboxFailed")
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
