"""The stream as pure functions: however the bytes are cut, the same reply; whatever is taken away, never a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_api import Reply, reply, tool
from fake_api.replies import encode_event
from standfast.model.anthropic_stream import BLOCKS_MAX, ReplyBuilder
from standfast.model.base import Completed, ModelError, StreamItem
from standfast.model.json_text import loads, parse_object, whole
from standfast.model.sse import EventTooLarge, SseReader


def bytes_of(made: Reply) -> bytes:
    return b"".join(encode_event(step) for step in made.steps if isinstance(step, dict))


def outcome(chunks: list[bytes]) -> tuple[list[StreamItem], Completed | str]:
    """What a stream in these chunks gives: its items, and the reply or the reason why there is none."""
    reader, builder = SseReader(), ReplyBuilder()
    items: list[StreamItem] = []
    try:
        for chunk in chunks:
            for data in reader.feed(chunk):
                item = builder.take(loads(data))
                if item is not None:
                    items.append(item)
        return items, builder.completed()
    except ModelError as error:
        return items, error.reason


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    arguments = draw(st.lists(st.dictionaries(texts, values, max_size=3), max_size=2))
    tools = [tool("f", id=f"tu_{at}", pieces=draw(st.integers(1, 5))) for at in range(len(arguments))]
    filled = [
        type(each)(each.name, args, each.id, None, each.pieces) for each, args in zip(tools, arguments, strict=True)
    ]
    return reply(*draw(st.lists(texts, max_size=4)), thinking=draw(st.none() | texts), tools=filled)


@settings(max_examples=150, deadline=None)
@given(replies(), st.data())
def test_any_cut_of_the_bytes_gives_the_same_items(made: Reply, data: st.DataObject) -> None:
    raw = bytes_of(made)
    line_end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    shown = raw.replace(b"\n", line_end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(shown)), max_size=8)))
    chunks = [shown[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(shown)], strict=True)]
    assert outcome([*chunks, b"\n"]) == outcome([raw])


@settings(max_examples=150, deadline=None)
@given(replies(), st.data())
def test_a_prefix_of_a_stream_never_gives_a_reply(made: Reply, data: st.DataObject) -> None:
    raw = bytes_of(made)
    items, end = outcome([raw[: data.draw(st.integers(0, len(raw) - 3))]])
    assert end == "StreamBroken"
    assert not any(isinstance(item, Completed) for item in items)


@settings(max_examples=150, deadline=None)
@given(replies(), st.data())
def test_a_stream_with_events_dropped_doubled_or_swapped_never_gives_other_arguments(
    made: Reply, data: st.DataObject
) -> None:
    """A mangled stream is an error, or a reply whose calls are among those that were meant."""
    whole_reply = outcome([bytes_of(made)])[1]
    meant = [call.args for call in whole_reply.calls] if isinstance(whole_reply, Completed) else []
    kept = [step for step in made.steps if not (isinstance(step, dict) and "input_json_delta" in str(step))]
    at = data.draw(st.integers(0, len(made.steps) - 1))
    steps = list(made.steps)
    match data.draw(st.sampled_from(["drop", "double", "swap"])):
        case "drop":
            steps = [step for step in steps if step is not steps[at] or step not in kept]
        case "double":
            steps.insert(at, steps[at]) if steps[at] in kept else None
        case _:
            other = data.draw(st.integers(0, len(steps) - 1))
            if steps[at] in kept and steps[other] in kept:
                steps[at], steps[other] = steps[other], steps[at]
    end = outcome([bytes_of(Reply(tuple(steps)))])[1]
    if isinstance(end, Completed):
        assert all(call.args in meant for call in end.calls)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.integers(-2, 9)
        | st.sampled_from(["text", "tool_use", "content_block_delta", "message_stop", ""]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "index", "delta", "content_block", "message", "usage"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_as_an_event_is_taken_or_refused_with_a_model_error(event: Any) -> None:
    builder = ReplyBuilder()
    builder.take({"type": "message_start", "message": {}})
    builder.take({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    try:
        builder.take(event)
        builder.completed()
    except ModelError as error:
        assert error.reason in ("InvalidReply", "StreamBroken", "UnknownStop")


def test_every_word_that_was_shown_stands_in_the_reply() -> None:
    items, end = outcome([bytes_of(reply("a", "b\ud83d", "\ude00", "c\ud83d"))])
    assert isinstance(end, Completed)
    assert (
        "".join(item.text for item in items if not isinstance(item, Completed))
        == end.blocks[0]["text"]
        == "ab😀c\ufffd"
    )


@pytest.mark.scenario("a35")
def test_thinking_is_kept_byte_for_byte_with_its_signature() -> None:
    end = outcome([bytes_of(reply("x", thinking=" plan é 😀\n", signature="SIG=="))])[1]
    assert isinstance(end, Completed)
    assert end.blocks[0] == {"type": "thinking", "thinking": " plan é 😀\n", "signature": "SIG=="}


def test_redacted_thinking_is_kept() -> None:
    end = outcome([bytes_of(reply("x", redacted="opaque"))])[1]
    assert isinstance(end, Completed)
    assert end.blocks[0] == {"type": "redacted_thinking", "data": "opaque"}


def test_a_reply_of_too_many_blocks_is_refused() -> None:
    builder = ReplyBuilder()
    builder.take({"type": "message_start", "message": {}})
    block = {"type": "text", "text": ""}
    for index in range(BLOCKS_MAX):
        builder.take({"type": "content_block_start", "index": index, "content_block": block})
    with pytest.raises(ModelError):
        builder.take({"type": "content_block_start", "index": BLOCKS_MAX, "content_block": block})


def test_a_part_after_the_end_of_its_block_is_refused() -> None:
    made = reply("a")
    again = made.insert(made.steps[2], after="content_block_stop")
    assert outcome([bytes_of(again)])[1] == "InvalidReply"


def test_comments_names_and_split_data_lines_are_read_as_the_standard_says() -> None:
    reader = SseReader()
    assert reader.feed(b': hello\n\nid: 1\nevent: x\ndata: {"a":\ndata:1}\n\n\n\ndata: unfin') == [b'{"a":\n1}']
    assert reader.feed(b"ished\n\n") == [b"unfinished"]


def test_an_endless_event_is_refused_before_it_fills_the_memory() -> None:
    reader = SseReader(bytes_max=1000)
    reader.feed(b"data: " + b"x" * 900)
    with pytest.raises(EventTooLarge):
        reader.feed(b"x" * 200)


@pytest.mark.parametrize(
    "raw", ["", "1", "[]", '{"a":1', '{"a":1}}', '{"a":Infinity}', '{"a":1e999}', '{"a":1,"a":1}', "{'a':1}"]
)
def test_arguments_are_never_repaired(raw: str) -> None:
    with pytest.raises(ValueError):
        parse_object(raw)


@given(st.text(st.characters()))
def test_whole_text_can_always_be_encoded_and_stays_as_it_was_where_it_could(text: str) -> None:
    made = whole(text)
    made.encode()
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert made == text
