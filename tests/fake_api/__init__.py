"""A strict fake of the Messages API on loopback: it refuses what the real one would, and fails as it can fail.

    from fake_api import FakeApi, reply, tool, http_error, Ending, Gate

    with FakeApi([reply("Hello"), reply("Reading.", tools=[tool("read_file", path="a.py")]), reply("Done.")]) as api:
        ...  # point the client at api.url with the key api.key
        assert api.requests[1].tool_results["toolu_fake_1"]["content"] == "..."
        assert not api.refused

Parts: `replies` (what to answer, and every way to break it), `rules` (pure: what the API refuses and in which words),
`server` (the HTTP side), `__main__` (the same as a process: `python -m fake_api --port 0 --script FILE`).
"""

from fake_api.replies import (
    Ending,
    Gate,
    HttpReply,
    NoAnswer,
    Pause,
    Reply,
    ToolUse,
    error_event,
    http_error,
    reply,
    tool,
)
from fake_api.requests import Request
from fake_api.rules import sign, violation
from fake_api.server import FakeApi

__all__ = [
    "Ending",
    "FakeApi",
    "Gate",
    "HttpReply",
    "NoAnswer",
    "Pause",
    "Reply",
    "Request",
    "ToolUse",
    "error_event",
    "http_error",
    "reply",
    "sign",
    "tool",
    "violation",
]
