"""What a git repository is like now, asked without running anything of the repository's own (R12.1, ATK-21).

Owns how git is called: hooks, filters, fsmonitor, signing, external diffs and text conversions of the repository stay off
until the person trusts the folder; reading takes no lock.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from standfast.cancelling import to_the_end
from standfast.errors import StandfastError
from standfast.tools.git_inert import SETTINGS, by_environment, inert_settings

ASK_S = 60.0
"""How long one question may take."""
_QUIET = ("gc.auto=0", "maintenance.auto=false", "safe.bareRepository=explicit")
"""Always: no housekeeping in the background; a folder that only looks like a repository is none."""
_INERT = tuple(f"{key}={value}" for key, value in SETTINGS)
"""Without trust: what a repository's own settings could start."""
_OWN_SCOPES = ("local", "worktree")


class GitFailed(StandfastError):
    """git refused a question. `message` has its own words."""


@dataclass(frozen=True, slots=True)
class Git:
    """How git is called in one workspace: what comes before the sub-command, and the environment."""

    workspace: Path
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    filters: tuple[str, ...] = ()
    """Filters that the repository's own settings define and that are off."""

    async def ask(self, *words: str, environment: Mapping[str, str] | None = None) -> bytes:
        """The output of a reading sub-command. Raises GitFailed."""
        code, out, error = await _call(
            [*self.argv, *words], self.workspace, {**self.environment, **(environment or {})}
        )
        if code != 0:
            said = error.decode("utf-8", "replace").strip()
            raise GitFailed("GitFailed", f"git {words[0]}: {said or f'exit code {code}'}")
        return out

    async def line(self, *words: str) -> str | None:
        """The one line that a question gives, None where git says no."""
        try:
            return (await self.ask(*words)).decode("utf-8", "surrogateescape").rstrip("\n")
        except GitFailed:
            return None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that a change depends on (R12.1)."""

    head: str | None
    """Commit id; None before the first commit."""
    branch: str | None
    """Full name of the branch; None where HEAD is detached."""
    index_tree: str | None
    """The tree that a commit of the index would have; None while it holds unmerged files."""
    changes: str
    """Hash of the difference that the action is about ("" where it is about none)."""


async def open_git(workspace: Path, environment: Mapping[str, str], *, trusted: bool) -> Git:
    """Find out how to call git here. Raises GitFailed where this is no repository, or one that works on another place."""
    program = await asyncio.to_thread(shutil.which, "git", path=environment.get("PATH"))
    if program is None:
        raise GitFailed("GitFailed", "git is not installed here.")
    settings = _QUIET if trusted else (*_QUIET, *_INERT)
    argv = (program, "--no-pager", "--literal-pathspecs", *(word for one in settings for word in ("-c", one)))
    environment = {
        **environment,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "LC_ALL": environment.get("LC_ALL", "C.UTF-8"),
    }
    git = Git(workspace, argv, environment)
    top = (await git.ask("rev-parse", "--show-toplevel")).decode("utf-8", "surrogateescape").rstrip("\n")
    if not await asyncio.to_thread(_contains, Path(top), workspace):
        raise GitFailed("GitFailed", "The repository's settings place its work tree somewhere else. Nothing was done.")
    if trusted:
        return git
    filters = await _own_filters(git)
    return Git(workspace, argv, {**environment, **by_environment(inert_settings(filters))}, filters)


def _contains(top: Path, workspace: Path) -> bool:
    return workspace.resolve().is_relative_to(top.resolve())


async def _own_filters(git: Git) -> tuple[str, ...]:
    """Names of filters that the repository itself defines (those of the person's own settings are the person's)."""
    try:
        listed = await git.ask("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
    except GitFailed:
        return ()
    words = listed.decode("utf-8", "surrogateescape").split("\0")
    pairs = zip(words[::2], words[1::2], strict=False)
    return tuple(sorted({key[len("filter.") : key.rindex(".")] for scope, key in pairs if scope in _OWN_SCOPES}))


async def snapshot(git: Git, difference: tuple[str, ...] = ()) -> Snapshot:
    """HEAD, branch, index and (where `difference` says how to ask for it) the changes an action is about."""
    shown = await git.ask(*difference) if difference else b""
    return Snapshot(
        head=await git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
        branch=await git.line("symbolic-ref", "--quiet", "HEAD"),
        index_tree=await index_tree(git),
        changes=sha256(shown).hexdigest() if difference else "",
    )


async def index_tree(git: Git) -> str | None:
    """The tree of the index, found beside the repository: neither its index nor its objects are touched."""
    place = Path(await git.line("rev-parse", "--git-path", "index") or "")
    objects = Path(await git.line("rev-parse", "--git-path", "objects") or "")
    beside = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="standfast-"))
    try:
        copy = beside / "index"
        await asyncio.to_thread(_copy, git.workspace / place, copy)
        environment = {
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(beside),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git.workspace / objects),
        }
        return (await git.ask("write-tree", "--missing-ok", environment=environment)).decode().strip()
    except GitFailed:
        return None
    finally:
        await to_the_end(asyncio.to_thread(shutil.rmtree, beside, ignore_errors=True))


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copyfile(source, target)


async def _call(argv: list[str], cwd: Path, environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(ASK_S):
            out, error = await process.communicate()
    except TimeoutError as error:
        raise GitFailed("GitFailed", f"git did not answer within {ASK_S:.0f} s.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out, error
