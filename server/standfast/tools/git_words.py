"""From the arguments of the `git` tool to git's own words (pure). What a model writes can be no option and no way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

_REVISION = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@^~{}-]*")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_NO_HELPERS = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty")
LOG_MAX = 200


class GitArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")
    action: Literal["status", "diff", "log", "branch", "add", "commit", "restore"]
    paths: list[str] | None = Field(None, description="Relative to the workspace, literally (add, restore, diff, log).")
    message: str | None = Field(None, description="For commit.")
    name: str | None = Field(None, description="For branch: create it here and switch to it. Without: list branches.")
    ref: str | None = Field(None, description="For diff and log: a commit or a branch.")
    staged: bool = Field(False, description="For diff: what is staged. For restore: unstage, files stay as they are.")
    limit: int = Field(20, ge=1, le=LOG_MAX, description="For log: how many commits.")


class Words(NamedTuple):
    """One git call."""

    argv: tuple[str, ...]
    """From the sub-command on."""
    title: str
    """As people read it."""
    changes: bool = False
    difference: tuple[str, ...] = ()
    """How to ask for the changes that the call is about: it depends on them, and they show afterwards what it did."""
    done: Callable[[bytes], bool] | None = None
    """Whether such an answer means that nothing is left to do."""
    risks: tuple[str, ...] = ()


def words_for(args: GitArgs) -> Words | str:
    """git's words for validated arguments; a sentence where they make no sense."""
    paths = args.paths or []
    bad = next((path for path in paths if not _is_inside(path)), None)
    if bad is not None:
        return f"{bad!r} is no path inside the workspace."
    if args.ref is not None and not _REVISION.fullmatch(args.ref):
        return f"{args.ref!r} is no commit or branch."
    return _MAKERS[args.action](args, paths)


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    odd = not path or "\0" in path or pure.is_absolute() or ".." in pure.parts
    return not odd and all(part.casefold() != ".git" for part in pure.parts)


def _status(args: GitArgs, paths: list[str]) -> Words | str:
    argv = (
        "status",
        "--porcelain=v1",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
        "--",
        *paths,
    )
    return Words(argv, "git status")


def _diff(args: GitArgs, paths: list[str]) -> Words | str:
    staged = ("--cached",) if args.staged else ()
    ref = (args.ref,) if args.ref else ()
    return Words(("diff", *_NO_HELPERS, *staged, *ref, "--", *paths), " ".join(["git diff", *staged, *ref, *paths]))


def _log(args: GitArgs, paths: list[str]) -> Words | str:
    shape = ("--no-color", "--no-show-signature", "--date=iso-strict", "--format=%h %ad %an: %s")
    ref = (args.ref,) if args.ref else ()
    return Words(("log", *shape, f"--max-count={args.limit}", *ref, "--", *paths), " ".join(["git log", *ref, *paths]))


def _branch(args: GitArgs, paths: list[str]) -> Words | str:
    if args.name is None:
        shape = "--format=%(if)%(HEAD)%(then)* %(else)  %(end)%(refname:short) %(objectname:short) %(contents:subject)"
        return Words(("for-each-ref", shape, "refs/heads"), "git branch")
    if not _BRANCH.fullmatch(args.name):
        return f"{args.name!r} is no name for a branch."
    return Words(("switch", "--no-guess", "--create", args.name), f"git switch --create {args.name}", changes=True)


def _add(args: GitArgs, paths: list[str]) -> Words | str:
    if not paths:
        return "add needs `paths` (`.` for everything)."
    listed = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
    return Words(("add", "--", *paths), " ".join(["git add", *paths]), True, (*listed, "--", *paths), _all_staged)


def _all_staged(status: bytes) -> bool:
    """Each entry is `XY path`: Y tells of the work tree against the index."""
    return all(entry[1:2] == b" " for entry in status.split(b"\0") if entry)


def _commit(args: GitArgs, paths: list[str]) -> Words | str:
    if paths:
        return "commit takes what is staged; use add for `paths` first."
    if not (args.message or "").strip():
        return "commit needs a `message`."
    return Words(("commit", f"--message={args.message}"), f"git commit: {args.message}", changes=True)


def _restore(args: GitArgs, paths: list[str]) -> Words | str:
    if not paths:
        return "restore needs `paths` (`.` for everything)."
    staged = ("--staged",) if args.staged else ()
    risk = () if staged else ("Throws away changes that are in no commit. It cannot be undone.",)
    return Words(
        argv=("restore", *staged, "--", *paths),
        title=" ".join(["git restore", *staged, *paths]),
        changes=True,
        difference=("diff", *_NO_HELPERS, "--binary", *(("--cached",) if staged else ()), "--", *paths),
        done=_nothing,
        risks=risk,
    )


def _nothing(difference: bytes) -> bool:
    return not difference


_MAKERS: dict[str, Callable[[GitArgs, list[str]], Words | str]] = {
    "status": _status,
    "diff": _diff,
    "log": _log,
    "branch": _branch,
    "add": _add,
    "commit": _commit,
    "restore": _restore,
}
