"""A conversation as the scripted model sees it: what the person last asked, and what became of each call since. Pure.

Everything is read from the messages of the request, so a script goes on right after a crash, wherever it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

State = Literal["done", "not_applied", "doubtful", "failed", "open"]

_ABSENT = re.compile(r"<(recovery|summary)>.*?</\1>", re.DOTALL)
_WORD = "(not_applied|applied|finished|partial|diverged|running|unknown|uncertain)"
_VERDICT = re.compile(rf"\b{_WORD}\b")
_TOLD = re.compile(rf"\): {_WORD} - |\(now {_WORD}\)")
"""How a line of `<recovery>` says a verdict, apart from the call's arguments, which may hold the same words."""
_STATE_OF: dict[str, State] = {"applied": "done", "finished": "done", "not_applied": "not_applied"}
GO_ON = frozenset({"", "go on.", "go on", "continue", "resume"})


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the script and what was told of it."""

    tool: str
    args: Mapping[str, Any]
    result: str
    state: State
    interrupted: bool
    """Its result was lost in a crash; `state` is what verification found."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last thing that the person asked for, and the calls since."""

    request: str
    steps: tuple[Step, ...]
    calls_made: int
    """In the whole conversation, for ids."""


def read(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """A request's messages as a Conversation. "Go on" and `<recovery>` ask for nothing new."""
    request, steps, calls_made = "", list[Step](), 0
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        if message["role"] == "user":
            text = _ABSENT.sub("", "\n".join(block["text"] for block in blocks if block["type"] == "text")).strip()
            if text.lower() not in GO_ON:
                request, steps = text, []
            continue
        uses = [block for block in blocks if block["type"] == "tool_use"]
        calls_made += len(uses)
        steps += [_step(use, messages[at + 1 :]) for use in uses]
    return Conversation(request, tuple(steps), calls_made)


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message's content as blocks."""
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[dict[str, Any]]", content)


def _step(use: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> Step:
    """A call with its result, and with what `<recovery>` said of it afterwards: the last word holds."""
    result, failed = "", True
    state: State = "open"
    interrupted = False
    for message in later:
        for block in blocks_of(message):
            if block["type"] == "tool_result" and block["tool_use_id"] == use["id"]:
                result, failed = _plain(block.get("content", "")), bool(block.get("is_error"))
                interrupted = failed and "interrupted" in result
                state = _state(result) if interrupted else "failed" if failed else "done"
            elif block["type"] == "text" and (news := _news_of(use["id"], block["text"])):
                state, interrupted = news, True
    return Step(use["name"], use["input"], result, state, interrupted)


def _news_of(use_id: str, text: str) -> State | None:
    """What a text says of a call that it names, if it does: the last word holds."""
    news: State | None = None
    for line in text.splitlines():
        if f"Call {use_id} (" not in line:
            continue
        if found := list(_TOLD.finditer(line)):
            news = _STATE_OF.get(found[-1][1] or found[-1][2], "doubtful")
        elif "now has its result (ok" in line:
            news = "done"
    return news


def _state(result: str) -> State:
    """What the words of an interrupted call's result mean."""
    if "had no effect" in result:
        return "not_applied"
    found = _VERDICT.search(result)
    return _STATE_OF.get(found[0], "doubtful") if found else "doubtful"


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in cast("list[dict[str, Any]]", content))
