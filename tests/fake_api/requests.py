"""One request as the fake received it, parsed for assertions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """What a client sent. `status` and `error` are what the fake answered (200 and None for an accepted one)."""

    number: int
    """Counts from 1, refused ones too."""
    path: str
    headers: dict[str, str]
    """Lower-case names."""
    raw: bytes
    body: dict[str, Any] = field(default_factory=dict)
    """Empty if the body was no JSON object."""
    status: int = 200
    error: str | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", [])

    @property
    def system_text(self) -> str:
        system = self.body.get("system", "")
        return system if isinstance(system, str) else "".join(block["text"] for block in system)

    @property
    def tool_names(self) -> list[str]:
        return [each["name"] for each in self.body.get("tools", [])]

    @property
    def last_text(self) -> str:
        """All text of the last message, tool results left out, joined by newlines."""
        return "\n".join(block["text"] for block in blocks_of(self.messages[-1]) if block["type"] == "text")

    @property
    def tool_results(self) -> dict[str, dict[str, Any]]:
        """Every tool_result of the request by its tool_use_id; `content` is joined text."""
        return {
            block["tool_use_id"]: {**block, "content": plain(block.get("content", ""))}
            for message in self.messages
            for block in blocks_of(message)
            if block["type"] == "tool_result"
        }

    @property
    def last_results(self) -> list[dict[str, Any]]:
        """The tool_result blocks of the last message, in order; `content` is joined text."""
        return [
            {**block, "content": plain(block.get("content", ""))}
            for block in blocks_of(self.messages[-1])
            if block["type"] == "tool_result"
        ]

    @property
    def whole_text(self) -> str:
        """All text and all tool results of all messages in order, to look for a sentence anywhere (`<recovery>`)."""
        return "\n".join(
            block.get("text") or plain(block.get("content", ""))
            for message in self.messages
            for block in blocks_of(message)
        )


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message's content as blocks, also where it was sent as a string."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def plain(content: Any) -> str:
    """A tool_result's content as text."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
