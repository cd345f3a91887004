"""What became of an interrupted git call, by the repository (design.md "Verification after a crash": tree and parent of HEAD)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from standfast.events.types import Verdict
from standfast.tools.git_state import Git, Snapshot, snapshot
from standfast.tools.git_words import GitArgs, Words, words_for


async def by_repository(git: Git, intent: Mapping[str, Any]) -> tuple[Verdict, str]:
    """(verdict, evidence) for the recorded intent of a change. Raises GitFailed where the repository cannot be asked."""
    before = Snapshot(intent["head"], intent["branch"], intent["indexTree"], intent["changes"])
    if intent["action"] == "commit":
        return await _commit(git, before)
    if intent["action"] == "branch":
        return await _branch(git, before, str(intent["name"]))
    args = {"action": intent["action"], "paths": intent["paths"], "staged": "--staged" in intent["argv"]}
    words = words_for(GitArgs.model_validate(args))
    assert isinstance(words, Words), "the same words were valid when the call began"
    return await _difference(git, before, words)


async def _commit(git: Git, before: Snapshot) -> tuple[Verdict, str]:
    commit = await commit_made(git, before)
    if commit is not None:
        return (
            "applied",
            f"The commit was made: {commit[:10]} stands on the recorded HEAD and holds the recorded index.",
        )
    head = (await snapshot(git)).head
    if head == before.head:
        return "not_applied", f"No commit was made: HEAD is still {(head or 'unborn')[:10]}."
    return "unknown", f"HEAD moved to {(head or 'unborn')[:10]}, and no commit there is the one that was meant."


async def commit_made(git: Git, before: Snapshot) -> str | None:
    """The id of a commit on top of `before` with exactly its index, if the branch has one by now (b06)."""
    beyond = ["rev-list", "--first-parent", "--format=%H %T %P", "--no-commit-header", before.branch or "HEAD"]
    listed = await git.line(*beyond, *([f"^{before.head}"] if before.head else []), "--")
    for line in (listed or "").splitlines():
        commit, tree, *parents = line.split()
        if tree == before.index_tree and parents == ([before.head] if before.head else []):
            return commit
    return None


async def _branch(git: Git, before: Snapshot, name: str) -> tuple[Verdict, str]:
    made = await git.line("rev-parse", "--verify", "--quiet", f"refs/heads/{name}^{{commit}}")
    now = await git.line("symbolic-ref", "--quiet", "HEAD")
    if now == f"refs/heads/{name}":
        return "applied", f"Branch {name} is there and checked out."
    if made is None:
        return "not_applied", f"There is no branch {name}."
    return "unknown", f"Branch {name} is there ({made[:10]}), but HEAD is on {now or 'no branch'}."


async def _difference(git: Git, before: Snapshot, words: Words) -> tuple[Verdict, str]:
    """By what is left to do: nothing, or exactly what there was."""
    left = await git.ask(*words.difference)
    if words.done is not None and words.done(left):
        return "applied", "Nothing of it is left to do: the index and the files are as it would leave them."
    if sha256(left).hexdigest() == before.changes:
        return "not_applied", "Everything is as it was before it began."
    return "unknown", "The changes it was about are neither as before nor all done."
