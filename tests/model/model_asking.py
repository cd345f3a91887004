"""One attempt at the model, and what it gave."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from standfast.model.base import Completed, Model, ModelError, ModelRequest, StreamItem, TextDelta, ThinkingDelta

TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object"}} for name in ("read_file", "write_file")
]


def request_of(*messages: dict[str, Any]) -> ModelRequest:
    """A request with these messages, or with one that says hello."""
    return ModelRequest("fake", "You are a test.", list(messages) or [{"role": "user", "content": "hello"}], TOOLS)


@dataclass
class Asked:
    """What one attempt gave: the streamed text, and a reply or an error."""

    text: str = ""
    thinking: str = ""
    deltas: int = 0
    completed: Completed | None = None
    error: ModelError | None = None
    items: list[StreamItem] = field(default_factory=list)

    @property
    def reply(self) -> Completed:
        assert self.error is None, self.error
        assert self.completed is not None
        return self.completed

    @property
    def failure(self) -> ModelError:
        assert self.completed is None, self.completed
        assert self.error is not None
        return self.error


async def ask(model: Model, request: ModelRequest | None = None) -> Asked:
    """One attempt, to its end."""
    asked = Asked()
    try:
        async with aclosing(model.stream(request or request_of())) as items:
            async for item in items:
                asked.items.append(item)
                match item:
                    case TextDelta(text):
                        asked.text += text
                        asked.deltas += 1
                    case ThinkingDelta(text):
                        asked.thinking += text
                    case Completed():
                        asked.completed = item
    except ModelError as error:
        asked.error = error
    return asked
