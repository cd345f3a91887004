"""The body that is sent: always one that the API takes, with the marks of the prompt cache."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from model_asking import TOOLS, request_of

from fake_api import sign, violation
from standfast.model.base import ModelRequest
from standfast.model.request import api_body, api_messages

CALL = {"type": "tool_use", "id": "tu_1", "name": "read_file", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "tu_1", "content": [{"type": "text", "text": "x"}]}


def thinking(text: str, signature: str | None = None) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": sign(text) if signature is None else signature}


def conversation(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": list(blocks)},
        {"role": "user", "content": [RESULT]},
    ]


def test_the_stable_prefix_is_marked_for_the_cache() -> None:
    body = api_body(
        request_of(*conversation(CALL), {"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"})
    )
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "You are a test.", "cache_control": mark}]
    assert [each.get("cache_control") for each in body["tools"]] == [None, mark]
    marked = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    assert [block["type"] for block in marked if "cache_control" in block] == ["tool_result", "text"]
    assert violation(body) is None


def test_marking_changes_nothing_that_the_caller_holds() -> None:
    messages = conversation(CALL)
    before = orjson.dumps([messages, TOOLS])
    api_body(ModelRequest("m", "s", messages, TOOLS))
    assert orjson.dumps([messages, TOOLS]) == before


@pytest.mark.scenario("a35")
def test_thinking_goes_back_byte_for_byte_or_not_at_all() -> None:
    kept = thinking("plan é 😀")
    sent = api_messages(
        conversation(thinking("", "SIG"), thinking("x", ""), {"type": "thinking", "thinking": "y"}, kept, CALL)
    )
    assert sent[1]["content"] == [kept, CALL]
    assert sent[1]["content"][0] is kept


def test_a_message_that_would_end_in_thinking_or_be_empty_is_still_one_that_the_api_takes() -> None:
    messages = [
        {"role": "user", "content": " "},
        {"role": "assistant", "content": [thinking("a")]},
        {"role": "user", "content": [{"type": "text", "text": "\n"}]},
    ]
    body = api_body(ModelRequest("m", "", messages, []))
    assert violation(body) is None
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "system" not in body
    assert "tools" not in body


@pytest.mark.scenario("a38")
def test_lone_surrogates_do_not_reach_the_wire() -> None:
    call = {**CALL, "input": {"cmd": "echo \ud99c"}}
    result = {**RESULT, "content": "x\ud800y"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    body = api_body(ModelRequest("m", "s", messages, TOOLS))
    assert violation(orjson.loads(orjson.dumps(body))) is None
    assert body["messages"][1]["content"][0]["input"] == {"cmd": "echo \ufffd"}
    assert body["messages"][2]["content"][0]["content"] == "x\ufffdy"


def test_thinking_is_asked_for_only_if_the_settings_say_so() -> None:
    assert "thinking" not in api_body(request_of())
    assert api_body(request_of(), "adaptive")["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert api_body(request_of(), "off")["thinking"] == {"type": "disabled"}
