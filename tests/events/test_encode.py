"""The stored bytes: flat, camelCase, complete, clean; and read back as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.events.encode import chain, decode, encode, plain
from standfast.events.types import (
    AssistantMessage,
    GoalUpdated,
    MessageQueued,
    SeenFile,
    SessionUpdated,
    TextContent,
    ToolCall,
    ToolResult,
    UnknownFact,
)


def test_a_body_is_flat_in_a_fixed_order_and_leaves_out_what_says_nothing() -> None:
    fact = ToolResult(call_id="c", status="ok", content="x", seen=[SeenFile(path="a", version=None, whole=True)])
    event = encode("s", "r", 7, fact).at(3, "before")
    assert event.body == (
        '{"seq":3,"atMs":7,"sessionId":"s","runId":"r","type":"tool_result","v":1,"callId":"c","status":"ok","content":"x",'
        '"recovered":false,"files":[],"seen":[{"path":"a","version":null,"whole":true}]}'
    )
    assert event.hash == chain("before", event.body)
    assert json.loads(event.wire) == json.loads(event.body) | {"hash": event.hash}


def test_no_run_no_key_and_a_fact_that_names_its_run_is_that_runs() -> None:
    assert '"runId"' not in encode("s", None, 1, SessionUpdated(title="t")).at(1, "s").body
    queued = MessageQueued(message_id="m", client_message_id="c", run_id="r9", content=[TextContent(text="hi")])
    event = encode("s", None, 1, queued).at(1, "s")
    assert event.run_id == "r9"
    assert event.body.count("runId") == 1


def test_what_a_model_or_tool_gave_is_kept_to_the_letter() -> None:
    blocks = [{"type": "text", "text": "a", "citations": None}, {"type": "thinking", "signature": "s", "n": 2**70}]
    for fact in (
        AssistantMessage(blocks=blocks, stop_reason=None),
        GoalUpdated(goal=None),
        ToolCall(call_id="c", provider_call_id="p", tool="t", args={"none": None, "deep": {"snake_case": [None, 1.5]}}),
    ):
        assert decode(encode("s", "r", 1, fact).at(1, "s").body) == fact


@pytest.mark.scenario("a38")
def test_pairs_of_surrogates_become_their_character_and_lone_ones_a_replacement() -> None:
    call = ToolCall(call_id="c", provider_call_id="p", tool="t", args={"\udc00k": "\ud83d\ude00 \ud99c"})
    event = encode("s", "r", 1, call).at(1, "s")
    event.body.encode()
    assert event.fact == ToolCall(call_id="c", provider_call_id="p", tool="t", args={"\ufffdk": "\U0001f600 \ufffd"})


def test_what_a_later_release_wrote_is_kept_whole() -> None:
    unknown = decode('{"seq":1,"atMs":2,"sessionId":"s","type":"moon_seen","v":1,"phaseName":"full","hash":"h"}')
    assert isinstance(unknown, UnknownFact)
    assert plain(unknown) == {"type": "moon_seen", "v": 1, "phaseName": "full"}
    newer = decode('{"type":"tool_result","v":2,"callId":"c","status":"ok","content":{"parts":[]}}')
    assert isinstance(newer, UnknownFact)
    assert newer.v == 2
    with pytest.raises(ValueError, match="not an event"):
        decode("[]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_arguments_come_back_as_they_were(args: dict[str, object]) -> None:
    fact = ToolCall(call_id="c", provider_call_id="p", tool="t", args=args)
    assert decode(encode("s", "r", 1, fact).at(1, "s").body) == fact
