"""A model that plays a small script, without a network or a key: for `standfast demo` and first steps. It says that it is one.

What it says next is a pure function of the messages, so it goes on right after any crash, as a real model does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any, Literal

from standfast.events.types import Usage
from standfast.model import demo_story, slash_commands
from standfast.model.base import Completed, ModelRequest, RequestedCall, StreamItem, TextDelta
from standfast.model.script_line import Line
from standfast.model.script_reader import read


class ScriptedModel:
    """A `Model`. `pause_s`: the time between two words, so that a person can watch."""

    provider: Literal["anthropic", "scripted"] = "scripted"

    def __init__(self, pause_s: float = 0.01) -> None:
        self._pause_s = pause_s

    async def warm(self) -> None:
        """Nothing is slow here."""

    async def close(self) -> None:
        """Nothing is open here."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        completed = reply_to(request.messages, {tool["name"] for tool in request.tools})
        text = next((block["text"] for block in completed.blocks if block["type"] == "text"), "")
        for word in re.findall(r"\S+\s*|\s+", text):
            yield TextDelta(word)
            await asyncio.sleep(self._pause_s)
        yield completed


def reply_to(messages: Sequence[Mapping[str, Any]], tools: Collection[str]) -> Completed:
    """The whole reply to a conversation. Pure; usage counts words, since no tokens are spent."""
    conversation = read(messages)
    line = (
        demo_story.next_line(conversation)
        if demo_story.is_asked_for(conversation.request)
        else slash_commands.next_line(conversation, tools)
    )
    usage = Usage(output_tokens=len(line.text.split()))
    blocks: list[dict[str, Any]] = [{"type": "text", "text": line.text}]
    if line.tool is None:
        return Completed(blocks, "end_turn", usage)
    call = _call(line, conversation.calls_made + 1)
    blocks.append({"type": "tool_use", "id": call.provider_call_id, "name": call.tool, "input": call.args})
    return Completed(blocks, "tool_use", usage, [call])


def _call(line: Line, number: int) -> RequestedCall:
    return RequestedCall(f"scripted_{number}", line.tool or "", line.args or {})
