"""The transcript: everything a person should read, nothing that could steer their terminal."""

from __future__ import annotations

import pytest

from standfast.events.encode import encode
from standfast.events.types import (
    AssistantChunk,
    AssistantMessage,
    Fact,
    Recorded,
    RunFinished,
    SessionCreated,
    Target,
    TextContent,
    ToolCall,
    ToolRecovery,
    ToolResult,
    UserMessage,
)
from standfast.projections.transcript import transcript


def told(*facts: Fact) -> str:
    events: list[Recorded] = [encode("s", "r", 1, fact).at(seq, "s") for seq, fact in enumerate(facts, 1)]
    return transcript(events)


def said(text: str) -> UserMessage:
    return UserMessage(message_id="m", client_message_id="c", content=[TextContent(text=text)])


def test_a_turn_reads_from_top_to_bottom() -> None:
    assert told(
        SessionCreated(workspace_uri="file:///w", title="Fix"),
        said("please"),
        AssistantChunk(attempt=1, offset=0, text="I wi"),
        AssistantMessage(blocks=[{"type": "text", "text": "I will."}], stop_reason="tool_use"),
        ToolCall(call_id="c", provider_call_id="p", tool="run_command", args={"command": "ls"}),
        ToolResult(call_id="c", status="ok", content="a.py", exit_code=0),
        RunFinished(status="succeeded"),
    ) == (
        "# Fix\n\nWorkspace: file:///w\n\n## You\n\nplease\n\n**Assistant**\n\nI will.\n\n**Call** `run_command`\n\n"
        "```\ncommand: ls\n```\n\n**Result**: ok, exit code 0\n\n```\na.py\n```\n"
    )


def test_text_that_was_cut_by_a_crash_is_shown_as_cut_and_not_doubled_by_a_new_attempt() -> None:
    text = told(
        AssistantChunk(attempt=1, offset=0, text="old"),
        AssistantChunk(attempt=2, offset=0, text="ne"),
        AssistantChunk(attempt=2, offset=2, text="w"),
        RunFinished(status="interrupted"),
    )
    assert text == "**Assistant** (cut off)\n\nnew\n\n---\n\n_Run interrupted_\n"


def test_a_verdict_is_told_with_its_evidence() -> None:
    target = Target(uri="file:///w/a", verdict="partial")
    text = told(ToolRecovery(call_id="c", status="partial", targets=[target], evidence="half of it"))
    assert text == "> **After the interruption**: partial file:///w/a\n> half of it\n"


@pytest.mark.scenario("ATK-43")
@pytest.mark.parametrize("bad", ["\x1b]0;x\x07", "\u202e", "\u2066", "\x9b", "\U000e0041", "\u2028", "\u200b"])
def test_characters_that_steer_or_hide_are_shown_by_number(bad: str) -> None:
    text = told(
        said(f"a{bad}b"),
        AssistantMessage(blocks=[{"type": "text", "text": bad}], stop_reason=None),
        ToolResult(call_id="c", status="ok", content=bad),
        ToolCall(call_id="c", provider_call_id="p", tool=bad, args={bad: bad}),
    )
    assert all(one.isprintable() or one == "\n" for one in text)
    assert text.count(f"\\u{{{ord(bad[0]):x}}}") >= 5


def test_output_cannot_close_its_own_fence() -> None:
    text = told(ToolResult(call_id="c", status="ok", content="```\n# not a heading"))
    assert "````\n```\n# not a heading\n````" in text


def test_nothing_is_nothing() -> None:
    assert transcript([]) == ""
