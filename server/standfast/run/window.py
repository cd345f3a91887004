"""Asks the model within its window and the person's budget: old results in one line when the window fills (R1.4), a checkpoint when
the context nears its end (R6.2), a stop before the call that would pass the goal's budget (R6.3)."""

from __future__ import annotations

import json

from standfast.errors import StandfastError
from standfast.events.types import GoalUpdated, ResultsShortened, Usage
from standfast.model.base import Completed, ModelError, ModelRequest
from standfast.run import goal, summary
from standfast.run.attempt import attempt
from standfast.run.checkpoint import summarise
from standfast.run.context import Context
from standfast.run.prompt import system, tool_definitions
from standfast.run.runtime import Runtime

FULL = 0.85
"""Share of the window from which on a checkpoint is made first."""
FILLED = 0.6
"""Share of the window from which on old results are shortened, where that is worth a prefix that is not cached any more:"""
WHOLE = 0.2
"""the newest results, this share of the window, stay whole,"""
WORTH = 0.15
"""and at least this share is saved."""


class Window:
    """What requests of one run weigh. The API's own count of the last one corrects the estimate of the next."""

    def __init__(self, run: Runtime) -> None:
        self._run = run
        self._tools = tool_definitions(run.offered)
        self._system = ""
        self._counted: tuple[int, int] | None = None
        """(tokens of the last request and its reply, characters of its messages)"""

    async def ask(self) -> Completed:
        """One whole reply. Raises ModelError; StandfastError (`BudgetReached`) before a call that would pass the budget."""
        request = await self._request()
        try:
            reply = await attempt(self._run, request)
        except ModelError as error:
            if error.reason != "ContextTooLong":
                raise
            await summarise(self._run, await self._run.context())
            request = await self._request()
            reply = await attempt(self._run, request)
        self._counted = (_total(reply.usage), _length(request))
        return reply

    async def _request(self) -> ModelRequest:
        if not self._system:
            self._system = system(await self._run.notes())
        context = await self._run.context()
        request, tokens = self._made(context)
        if tokens + self._run.max_tokens > self._run.window * FILLED and await self._shorten(context):
            context = await self._run.context()
            request, tokens = self._made(context)
        if tokens + self._run.max_tokens > self._run.window * FULL and len(request.messages) > 1:
            await summarise(self._run, context)
            self._counted = None
            request, tokens = self._made(await self._run.context())
        await self._keep_to_budget(tokens)
        return request

    async def _shorten(self, context: Context) -> bool:
        """Have old results told in one line from now on, all at once, so that the prefix changes seldom."""
        room = self._run.window * summary.CHARACTERS_PER_TOKEN
        through, saved = context.old_results(int(room * WHOLE))
        if saved < room * WORTH:
            return False
        await self._run.emit(ResultsShortened(through_seq=through))
        self._counted = None
        return True

    def _made(self, context: Context) -> tuple[ModelRequest, int]:
        """A request, and its tokens without the reply's."""
        run = self._run
        request = ModelRequest(
            model=run.model_name, system=self._system, messages=context.messages(), tools=self._tools,
            max_tokens=run.max_tokens,
        )  # fmt: skip
        return request, self._tokens(request)

    def _tokens(self, request: ModelRequest) -> int:
        if self._counted is None:
            return summary.estimate([self._system, self._tools]) + summary.estimate(request.messages)
        tokens, length = self._counted
        return tokens + max(0, _length(request) - length) // summary.CHARACTERS_PER_TOKEN

    async def _keep_to_budget(self, tokens: int) -> None:
        current = await self._run.goal()
        if current is None or current["status"] != "active" or goal.affords(current, tokens):
            return
        await self._run.emit(GoalUpdated(goal=goal.changed(current, self._run.clock.now_ms(), status="budget_limited")))
        raise StandfastError(
            "BudgetReached",
            f"The goal's budget of {current['tokenBudget']} tokens would be passed by the next call (about {tokens} tokens). "
            "Nothing was sent. Raise the budget, or send a message after clearing the goal.",
        )


def _total(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def _length(request: ModelRequest) -> int:
    return len(json.dumps(list(request.messages), ensure_ascii=False))
