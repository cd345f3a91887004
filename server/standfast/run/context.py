"""What the model is told: a fold from events to the Messages API's messages (R1.4, R9.4). Pure.

For every prefix of every log the result is a request that the API accepts: each tool_use is answered right after its message,
once, first; ids are unique; thinking blocks are untouched; roles alternate.

The fold *freezes* at each `model_request`: what was open then (a call without a result, news for `<recovery>`) was told then, and
later requests say it in the same words at the same place. What becomes known afterwards is told at the tail. So the prefix of
consecutive requests is stable (prompt cache) and the model is never told two stories about one call. Only `results_shortened`
changes what was told, at once for many old results: each becomes one line that says how to read it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from standfast.events.types import (
    AssistantMessage,
    ConflictResolved,
    Fact,
    GoalUpdated,
    ModelRequest,
    RecoveryResolved,
    ResultsShortened,
    RunFinished,
    RunStarted,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
    UserMessage,
)
from standfast.run import told

Block = dict[str, Any]
Message = dict[str, Any]

TYPES = (
    "user_message", "assistant_message", "model_request", "run_started", "run_finished", "tool_call", "tool_started",
    "tool_result", "tool_recovery", "recovery_resolved", "conflict_resolved", "goal_updated",
    "results_shortened",
)  # fmt: skip
"""The events that matter here; streamed chunks and output need not be read."""

_GOOD_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
GO_ON = "Go on."
LONG = 600
"""Characters from which on an old result is shortened."""


@dataclass(slots=True)
class _Call:
    """A tool_use that the model made, and what it was told of it."""

    use_id: str
    provider_id: str
    tool: str
    call_id: str | None = None
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    started: bool = False
    result: ToolResult | None = None
    result_seq: int = 0
    recovery: ToolRecovery | None = None
    resolution: RecoveryResolved | None = None
    answered: bool = False
    """Its tool_result stands in a frozen message."""
    in_words: bool = False
    """Its tool is not among those of the request (another agent's, an earlier release's): told as text."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A result that was told whole: at which seq it came, its call, and the very block that tells it."""

    seq: int
    call: _Call
    block: Block

    @property
    def length(self) -> int:
        return len(self.call.result.content) if self.call.result is not None else 0


class Context:
    """The fold. `add` events in order, then `messages()`; it can go on with further events afterwards.

    `summary` tells what came before (R6.2): then only events after its `through_seq` are added. `tools`: names of those that
    requests offer (None: not known); the API refuses a tool_use of another.
    """

    def __init__(self, summary: str | None = None, tools: frozenset[str] | None = None) -> None:
        self._tools = tools
        self._messages: list[Message] = []
        self._text: list[str] = [] if summary is None else [told.summary(summary)]
        self._news: list[str] = []
        self._open: list[_Call] = []
        self._calls: dict[str, _Call] = {}
        self._undone: set[str] = set()
        """Calls by which the person takes changes back; the model did not make them."""
        self._ids: set[str] = set()
        self._whole: list[_Whole] = []
        self._last_failure: RunFinished | None = None
        self._requested = False
        self.steered = False
        """The person put a message into the run that the model was not told of yet."""
        self._goal: tuple[Any, ...] | None = None
        self._turns: list[tuple[int, int]] = []
        """Where a run began with nothing left open: (seq before it, number of messages before it)."""
        self.last_seq = 0

    def add(self, fact: Fact, seq: int = 0) -> None:
        """Take one event. Unknown and irrelevant ones are ignored."""
        self.last_seq = max(self.last_seq, seq)
        self._take(fact)

    def messages(self) -> list[Message]:
        """The messages of a request that is made now. Leaves the fold as it is."""
        frozen = list(self._messages)
        self._freeze_into(frozen)
        return frozen

    def before_tail(self, fits: Callable[[list[Message]], bool]) -> tuple[int, list[Message]]:
        """What a checkpoint is made of: (seq up to which, the messages up to there). The newest whole runs that fit stay out of it."""
        for seq, count in self._turns:
            if count and fits(self._messages[count:]):
                return seq, self._messages[:count]
        return self.last_seq, self.messages()

    def old_results(self, keep: int) -> tuple[int, int]:
        """What shortening would save: (seq up to which, characters), where the newest results of `keep` characters stay whole.

        Only what the model was told already counts: nothing is shortened that it has not seen.
        """
        through = saved = 0
        for whole in reversed(self._whole):
            keep -= whole.length
            if keep < 0:
                through = max(through, whole.seq)
                saved += whole.length if whole.length > LONG else 0
        return through, saved

    # -- cases ----------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def _take(self, fact: Fact) -> None:
        """What an event means for the model; most mean nothing."""

    @_take.register
    def _user_message(self, fact: UserMessage) -> None:
        self._text.extend(part.text for part in fact.content if part.text.strip())
        self.steered = self.steered or fact.steer

    @_take.register
    def _model_request(self, fact: ModelRequest) -> None:
        self._freeze()
        self._requested = True

    @_take.register
    def _assistant_message(self, fact: AssistantMessage) -> None:
        """What came in while the model was answering was not told yet: it waits for the next request."""
        if not self._requested:
            self._freeze()
        self._requested = False
        blocks = [copy for block in fact.blocks if (copy := self._assistant_block(block)) is not None]
        if any(block["type"] in ("text", "tool_use") for block in blocks):
            self._messages.append({"role": "assistant", "content": blocks})

    def _assistant_block(self, block: Block) -> Block | None:
        match block.get("type"):
            case "text":
                return {"type": "text", "text": block["text"]} if str(block.get("text", "")).strip() else None
            case "thinking":
                return block if block.get("signature") and block.get("thinking") else None
            case "redacted_thinking":
                return block if block.get("data") else None
            case "tool_use":
                call = self._new_use(block)
                if call.in_words:
                    return {"type": "text", "text": told.call_in_words(call.tool, block.get("input") or {})}
                return {"type": "tool_use", "id": call.use_id, "name": block["name"], "input": block.get("input") or {}}
            case _:
                return None

    def _new_use(self, block: Block) -> _Call:
        """The provider's id where it can be sent; else one of our own (providers repeat ids)."""
        provider_id = str(block.get("id", ""))
        use_id = provider_id if _GOOD_ID.match(provider_id) else "call"
        base, n = use_id, 1
        while use_id in self._ids:
            n += 1
            use_id = f"{base[:56]}_r{n}"
        self._ids.add(use_id)
        call = _Call(use_id, provider_id, str(block["name"]))
        call.in_words = self._tools is not None and call.tool not in self._tools
        self._open.append(call)
        return call

    @_take.register
    def _tool_call(self, fact: ToolCall) -> None:
        if fact.tool == "undo" and not fact.provider_call_id:
            self._undone.add(fact.call_id)
        for call in self._open:
            if call.call_id is None and call.provider_id == fact.provider_call_id:
                call.call_id, call.args = fact.call_id, fact.args
                self._calls[fact.call_id] = call
                return

    @_take.register
    def _tool_started(self, fact: ToolStarted) -> None:
        if call := self._calls.get(fact.call_id):
            call.started = True

    @_take.register
    def _tool_result(self, fact: ToolResult) -> None:
        if fact.call_id in self._undone and fact.files:
            self._news.append(told.undone(fact))
        call = self._calls.get(fact.call_id)
        if call is None or call.result is not None:
            return
        call.result, call.result_seq = fact, self.last_seq
        if call.answered:
            self._news.append(told.late_result(call.tool, call.use_id, fact))

    @_take.register
    def _tool_recovery(self, fact: ToolRecovery) -> None:
        call = self._calls.get(fact.call_id)
        if call is None:
            return
        call.recovery = fact
        if call.answered and fact.status != "uncertain":
            self._news.append(told.verdict_line(call.tool, call.use_id, call.args, fact, call.resolution))

    @_take.register
    def _recovery_resolved(self, fact: RecoveryResolved) -> None:
        call = self._calls.get(fact.call_id)
        if call is None:
            return
        call.resolution = fact
        if call.answered:
            self._news.append(told.resolution_line(call.tool, call.use_id, fact))

    @_take.register
    def _conflict_resolved(self, fact: ConflictResolved) -> None:
        if line := told.conflict_line(fact):
            self._news.append(line)

    @_take.register
    def _goal_updated(self, fact: GoalUpdated) -> None:
        """A goal that the person set, changed, paused or took away is told once; what it has used is not."""
        goal = fact.goal
        now = None if goal is None else (goal.get("objective"), goal.get("status"), goal.get("tokenBudget"))
        if now != self._goal:
            self._goal = now
            self._text.append(told.goal(goal))

    @_take.register
    def _results_shortened(self, fact: ResultsShortened) -> None:
        """Messages that were handed out are left as they are: those that change are made anew."""
        old = [whole for whole in self._whole if whole.seq <= fact.through_seq]
        self._whole = [whole for whole in self._whole if whole.seq > fact.through_seq]
        short = {id(whole.block): _shortened(whole.call) for whole in old if whole.length > LONG}
        for at, message in enumerate(self._messages):
            if any(id(block) in short for block in message["content"]):
                blocks = [short.get(id(block), block) for block in message["content"]]
                self._messages[at] = {"role": message["role"], "content": blocks}

    @_take.register
    def _run_finished(self, fact: RunFinished) -> None:
        self._last_failure = fact if fact.status != "succeeded" else None

    @_take.register
    def _run_started(self, fact: RunStarted) -> None:
        """The end of the run before is news, if it was not a good one; `<recovery>` is told once, here."""
        if not (self._open or self._news or self._text or self._last_failure):
            self._turns.append((self.last_seq - 1, len(self._messages)))
        if self._last_failure is not None:
            self._news[:0] = told.run_end(self._last_failure, _uncertain(self._open))
            self._last_failure = None

    # -- freezing -------------------------------------------------------------------------------------------------

    def _freeze(self) -> None:
        for call, block in self._freeze_into(self._messages):
            call.answered = True
            if call.result is not None and call.call_id is not None:
                self._whole.append(_Whole(call.result_seq, call, block))
        self._open, self._news, self._text, self.steered = [], [], [], False

    def _freeze_into(self, messages: list[Message]) -> list[tuple[_Call, Block]]:
        """Append (or extend) the user message that answers what is open and says what is new; returns the answers."""
        answers = [(call, _answer(call, call.result)) for call in self._open]
        blocks: list[Block] = [block for call, block in answers if not call.in_words]
        blocks += [block for call, block in answers if call.in_words]
        if self._news:
            blocks.append({"type": "text", "text": told.recovery_block(self._news)})
        blocks.extend({"type": "text", "text": text} for text in self._text)
        if messages and messages[-1]["role"] == "user":
            if blocks:
                last = messages.pop()
                messages.append({"role": "user", "content": [*last["content"], *blocks]})
            return answers
        messages.append({"role": "user", "content": blocks or [{"type": "text", "text": GO_ON}]})
        return answers


def _answer(call: _Call, result: ToolResult | None) -> Block:
    block = told.result_block(call.use_id, result, call.recovery, call.resolution, started=call.started)
    return told.result_in_words(call.tool, block) if call.in_words else block


def _shortened(call: _Call) -> Block:
    assert call.result is not None and call.call_id is not None
    return _answer(call, told.shortened(call.call_id, call.result))


def _uncertain(calls: Iterable[_Call]) -> list[str]:
    """One line for each open call that `<recovery>` must name: started, outcome lost (settled by verdict or not)."""
    return [
        told.verdict_line(call.tool, call.use_id, call.args, call.recovery, call.resolution)
        for call in calls
        if call.recovery is not None
    ]
