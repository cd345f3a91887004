"""`git`: status, diff, log, branch, add, commit, restore (issue C part 2, R12.1). No shell; under a supervisor like any command.

A change records HEAD, branch and index before it acts, looks again right before, and is verified by the repository.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from standfast.events.types import Intent, Target, Verdict
from standfast.process.environment import command_environment
from standfast.process.launch import Commands
from standfast.process.record import Spec
from standfast.tools.base import Effect, Outcome, Plan, Settlement, StartedCall, ToolContext, Verification
from standfast.tools.commands_base import (
    digest,
    evidence,
    follow,
    not_available,
    outcome_of,
    record_directory,
    start,
    stop_started,
    stopped_for_cancel,
    visible,
)
from standfast.tools.confining import Wish, bound, confined, explained
from standfast.tools.git_lock import remove_lock, with_lock
from standfast.tools.git_state import Git, GitFailed, Snapshot, open_git, snapshot
from standfast.tools.git_verdict import by_repository
from standfast.tools.git_words import GitArgs, Words, words_for

TIMEOUT_MS = 300_000


class Step(NamedTuple):
    """What `plan` hands to `run`."""

    git: Git
    words: Words
    before: Snapshot | None
    """None for reading."""


class GitTool:
    """The tool. `commands` is the daemon's own set of living commands."""

    name = "git"
    description = (
        "Work with the workspace's git repository: status, diff, log, branch (list, or create and switch to `name`), add, "
        "commit (what is staged), restore (throw changes away, or unstage with staged: true). Hooks and filters of the "
        "repository do not run unless the person trusts the folder."
    )
    effect: Effect = "command"
    Args: type[BaseModel] = GitArgs

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    async def plan(self, args: GitArgs, ctx: ToolContext) -> Plan | Outcome:
        words = words_for(args)
        if isinstance(words, str):
            return Outcome("error", f"{words} Nothing was done.", reason="BadArguments")
        try:
            git = await self._git(ctx)
            if not words.changes:
                return Plan(effect="read", summary=words.title, state=Step(git, words, None))
            before = await snapshot(git, words.difference)
        except GitFailed as failed:
            return Outcome("error", f"{failed.message} Nothing was done.", reason="GitFailed")
        if args.action == "commit" and before.index_tree is None:
            return Outcome(
                "error", "The index holds unmerged files: settle them first. Nothing was done.", reason="GitFailed"
            )
        where = f"{(before.branch or 'detached HEAD').removeprefix('refs/heads/')} at {(before.head or 'no commit yet')[:10]}"
        intent = {"argv": list(words.argv), "command": words.title, "record": ctx.call_id, "action": args.action}
        state = {
            "head": before.head,
            "branch": before.branch,
            "indexTree": before.index_tree,
            "changes": before.changes,
        }
        return Plan(
            effect="command",
            summary=f"{visible(words.title)} ({visible(where)})",
            digest=digest("git", words.argv, asdict(before), git.filters, self.commands.sandbox.level),
            intents=(
                Intent.model_validate(
                    {"kind": "git", **intent, **state, "name": args.name, "paths": list(args.paths or [])}
                    | {"operationId": ctx.operation_id}
                ),
            ),
            risks=(*words.risks, *_filter_risk(git, args), *_trust_risk(ctx)),
            state=Step(git, words, before),
        )

    async def run(self, args: GitArgs, plan: Plan, ctx: ToolContext) -> Outcome:
        """Look again, then act. Cancelled: ends git and returns a `cancelled` outcome that says so."""
        step: Step = plan.state
        directory = ctx.spool / ctx.call_id
        try:
            if step.before is not None and (moved := await self._moved(step)):
                return Outcome("error", moved, reason="GIT_CHANGED")
            spec = Spec(
                argv=[*step.git.argv, *step.words.argv],
                command=step.words.title,
                cwd=str(ctx.workspace),
                call_id=ctx.call_id,
                session_id=ctx.session_id,
                operation_id=ctx.operation_id,
                timeout_ms=TIMEOUT_MS,
            )
            environment = {**step.git.environment, "STANDFAST_OPERATION_ID": ctx.operation_id}
            under = bound(self.commands, Wish())
            spec, environment = await confined(self.commands, spec, environment, ctx, under, for_git=True)
            started = await start(self.commands, directory, spec, environment)
            if isinstance(started, Outcome):
                return started
            await follow(started, ctx)
            outcome = await outcome_of(await self.commands.wait(directory), directory)
            return explained(outcome, under, can_widen=False)
        except asyncio.CancelledError:
            return await stopped_for_cancel(self.commands, directory)
        except GitFailed as failed:
            return Outcome("error", f"{failed.message} Nothing was done.", reason="GitFailed")

    async def _moved(self, step: Step) -> str | None:
        """What changed since the plan was shown, None if nothing did (R12.1)."""
        now, before = await snapshot(step.git, step.words.difference), step.before
        assert before is not None
        if now == before:
            return None
        changed = [name for name, value in asdict(before).items() if asdict(now)[name] != value]
        what = ", ".join(
            {"index_tree": "the index", "changes": "the files' changes"}.get(name, name) for name in changed
        )
        return (
            f"GIT_CHANGED: {what} moved since this was planned (HEAD is {(now.head or 'unborn')[:10]} on "
            f"{now.branch or 'no branch'}). Nothing was done. Look at status and diff, then try again."
        )

    async def verify(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """By the repository, once git itself is gone; its exit record gives the real result where there is one."""
        if not call.intents:
            text = "It only reads: nothing was changed, and it can be repeated."
            return Verification("not_applied", (), text, Outcome("cancelled", f"Interrupted. {text}"))
        intent: dict[str, Any] = call.intents[0].model_dump(by_alias=True)
        directory = record_directory(call, ctx)
        state = await self.commands.state(directory)
        if state.found in ("starting", "running", "unsupervised", "later_version"):
            verdict: Verdict = "unknown" if state.found == "later_version" else "running"
            return _verification(verdict, intent, evidence(state))
        try:
            verdict, seen = await by_repository(await self._git(ctx), intent)
        except GitFailed as failed:
            verdict, seen = "unknown", f"The repository cannot be asked: {failed.message}"
        if state.found == "never_begun":
            verdict, seen = "not_applied", evidence(state)
        outcome = await outcome_of(state, directory) if state.found == "ended" else None
        if outcome is not None and verdict == "unknown":
            verdict = "finished"  # others changed the repository since; git's own result is known all the same
        elif outcome is None and verdict != "unknown":
            outcome = Outcome("ok" if verdict == "applied" else "cancelled", f"Found after a crash: {seen}")
        text = await with_lock(f"{seen} {evidence(state)}", ctx.workspace, state)
        return _verification(verdict, intent, text, outcome)

    async def wait(self, call: StartedCall, ctx: ToolContext) -> Verification:
        """Wait for a `running` git to end, then verify."""
        await self.commands.wait(record_directory(call, ctx))
        return await self.verify(call, ctx)

    async def settle(self, action: str, call: StartedCall, ctx: ToolContext) -> Settlement:
        """`stop`, or `removeLock` for an index.lock that this call's dead git left."""
        if action == "stop":
            return await stop_started(self.commands, call, ctx)
        if action == "removeLock":
            done = await remove_lock(self.commands, call, ctx)
            found = await self.verify(call, ctx)
            return replace(done, verdict=found.verdict, targets=found.targets)
        raise not_available(
            action, "a git call is not repeated or taken back by itself; ask the agent to look and decide."
        )

    async def _git(self, ctx: ToolContext) -> Git:
        environment = command_environment(self.commands.environ, ctx.operation_id)
        return await open_git(ctx.workspace, environment, trusted=ctx.trusted)


def _filter_risk(git: Git, args: GitArgs) -> tuple[str, ...]:
    """What a person must know where filters are off: files go in, or come out, as they are."""
    if not git.filters or args.action not in ("add", "restore"):
        return ()
    names = ", ".join(visible(name) for name in git.filters)
    return (
        f"The repository's own filters ({names}) do not run: files are taken as they are. Trust the folder to run them.",
    )


def _trust_risk(ctx: ToolContext) -> tuple[str, ...]:
    """A trusted folder that changed is a question anew; until it is answered its own files act on nothing."""
    if not ctx.distrusted:
        return ()
    names = ", ".join(visible(name) for name in ctx.distrusted[:8])
    return (
        f"Changed since you trusted the folder: {names}. Its hooks, filters and notes do not act until you trust it again.",
    )


def _verification(verdict: Verdict, intent: dict[str, Any], text: str, outcome: Outcome | None = None) -> Verification:
    return Verification(verdict, (Target(command=str(intent["command"]), verdict=verdict),), text, outcome)
