"""Each fault of a model's server against the real SDK: nothing of a broken reply may be carried out (reliability.md §4)."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from model_asking import Asked, ask, request_of

from fake_api import Ending, FakeApi, Gate, HttpReply, NoAnswer, Reply, error_event, http_error, reply, sign, tool
from standfast.clock import SystemClock
from standfast.config import ModelSettings
from standfast.events.types import Usage
from standfast.model.anthropic_model import AnthropicModel
from standfast.model.base import Completed, ModelError, RequestedCall, TextDelta
from standfast.model.credentials import Credentials

AskFor = Callable[..., Awaitable[Asked]]


async def test_a_whole_reply_comes_as_deltas_and_one_completed(ask_for: AskFor, fake_api: FakeApi) -> None:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 9}
    asked = await ask_for(
        reply("I ", "read.", thinking="hm é 😀", tools=[tool("read_file", id="tu_1", path="ä.py")], usage=usage)
    )
    assert asked.text == "I read."
    assert asked.thinking == "hm é 😀"
    assert asked.reply == Completed(
        blocks=[
            {"type": "thinking", "thinking": "hm é 😀", "signature": sign("hm é 😀")},
            {"type": "text", "text": "I read."},
            {"type": "tool_use", "id": "tu_1", "name": "read_file", "input": {"path": "ä.py"}},
        ],
        stop_reason="tool_use",
        usage=Usage(input_tokens=7, output_tokens=9, cache_read_input_tokens=3),
        calls=[RequestedCall("tu_1", "read_file", {"path": "ä.py"})],
    )
    assert not fake_api.refused


CALL = tool("write_file", id="tu_1", path="a.txt", content="half")
TEXT_THEN_CALL = reply("I write.", tools=[CALL])

BROKEN: dict[str, tuple[Reply, str, bool]] = {
    "cut": (TEXT_THEN_CALL.ending(Ending.CUT, after="text_delta"), "StreamBroken", True),
    "reset": (TEXT_THEN_CALL.ending(Ending.RESET, after="text_delta"), "StreamBroken", True),
    "cut within the arguments": (
        TEXT_THEN_CALL.ending(Ending.CUT, after="input_json_delta", nth=2),
        "StreamBroken",
        True,
    ),
    "clean end within the arguments": (
        TEXT_THEN_CALL.ending(Ending.EOF, after="input_json_delta"),
        "StreamBroken",
        True,
    ),
    "clean end before the stop reason": (
        TEXT_THEN_CALL.ending(Ending.EOF, after="content_block_stop", nth=2),
        "StreamBroken",
        True,
    ),
    "clean end without message_stop": (TEXT_THEN_CALL.ending(Ending.EOF, after="message_delta"), "StreamBroken", True),
    "message_stop without a stop reason": (TEXT_THEN_CALL.without("message_delta"), "StreamBroken", True),
    "error event": (TEXT_THEN_CALL.insert(error_event(), after="text_delta"), "Overloaded", True),
    "error event of another kind": (
        TEXT_THEN_CALL.insert(error_event("api_error", "Internal server error"), after="text_delta"),
        "StreamBroken",
        True,
    ),
    "broken JSON": (TEXT_THEN_CALL.insert(b"event: x\ndata: {oops\n\n", after="text_delta"), "StreamBroken", True),
    "bytes that are no text": (
        TEXT_THEN_CALL.insert(b'data: "\xff\xfe"\n\n', after="text_delta"),
        "StreamBroken",
        True,
    ),
    "an event that is a list": (TEXT_THEN_CALL.insert(b"data: [1]\n\n", after="text_delta"), "InvalidReply", False),
    "unknown index": (
        TEXT_THEN_CALL.insert(
            {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
            after="text_delta",
        ),
        "InvalidReply",
        True,
    ),
    "event without its parts": (
        TEXT_THEN_CALL.insert({"type": "content_block_stop"}, after="text_delta"),
        "InvalidReply",
        True,
    ),
    "second message_start": (TEXT_THEN_CALL.insert(reply("b").steps[0], after="text_delta"), "InvalidReply", True),
    "a block begun twice": (
        TEXT_THEN_CALL.insert(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            after="text_delta",
        ),
        "InvalidReply",
        True,
    ),
    "a block closed twice": (
        TEXT_THEN_CALL.insert({"type": "content_block_stop", "index": 0}, after="content_block_stop"),
        "InvalidReply",
        True,
    ),
    "block never closed": (TEXT_THEN_CALL.without("content_block_stop"), "InvalidReply", True),
    "arguments that are garbage": (reply("I write.", tools=[tool("f", raw="{nope")]), "InvalidReply", True),
    "arguments cut short": (reply("I write.", tools=[tool("f", raw='{"path": "a.txt", "con')]), "InvalidReply", True),
    "arguments that are a list": (reply("I write.", tools=[tool("f", raw="[1, 2]")]), "InvalidReply", True),
    "arguments with NaN": (reply("I write.", tools=[tool("f", raw='{"a": NaN}')]), "InvalidReply", True),
    "arguments with a key twice": (reply("I write.", tools=[tool("f", raw='{"a": 1, "a": 2}')]), "InvalidReply", True),
    "arguments too deep to store": (
        reply("I write.", tools=[tool("f", raw='{"a":' * 9000 + "1" + "}" * 9000)]),
        "InvalidReply",
        True,
    ),
    "arguments with a number too large to store": (
        reply("I write.", tools=[tool("f", raw='{"a": %s}' % ("9" * 40))]),
        "InvalidReply",
        True,
    ),
    "two calls with one id": (reply("I write.", tools=[CALL, CALL]), "InvalidReply", True),
    "a call without a name": (reply("I write.", tools=[tool("", id="tu_1")]), "InvalidReply", True),
    "a call but another stop": (reply("I write.", tools=[CALL], stop_reason="end_turn"), "InvalidReply", True),
    "tool_use without a call": (reply("I write.", stop_reason="tool_use"), "InvalidReply", True),
    "refusal": (reply("I write.", stop_reason="refusal"), "Refusal", False),
    "pause_turn": (reply("I write.", stop_reason="pause_turn"), "UnknownStop", False),
    "unknown stop reason": (reply("I write.", tools=[CALL], stop_reason="because"), "UnknownStop", False),
    "context full": (reply("I write.", stop_reason="model_context_window_exceeded"), "ContextTooLong", False),
    "unknown event": (TEXT_THEN_CALL.insert({"type": "brand_new"}, after="text_delta"), "InvalidReply", False),
    "unknown block": (
        TEXT_THEN_CALL.insert(
            {"type": "content_block_start", "index": 1, "content_block": {"type": "hologram"}},
            after="content_block_stop",
        ),
        "InvalidReply",
        False,
    ),
    "unknown delta": (
        TEXT_THEN_CALL.insert(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "smell_delta"}}, after="text_delta"
        ),
        "InvalidReply",
        False,
    ),
    "stall": (TEXT_THEN_CALL.ending(Ending.STALL, after="text_delta"), "StreamStalled", True),
    "an event of 5 MB": (
        TEXT_THEN_CALL.insert(b'data: {"x": "' + b"x" * 5_000_000 + b'"}\n\n', after="text_delta"),
        "InvalidReply",
        False,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_reply_is_one_typed_error_and_its_text_stays(ask_for: AskFor, name: str) -> None:
    answer, reason, retry = BROKEN[name]
    asked = await ask_for(answer)
    assert (asked.failure.reason, asked.failure.retry) == (reason, retry)
    assert asked.text == "I write."
    assert "Nothing" in asked.failure.message


@pytest.mark.scenario("c12")
async def test_arguments_cut_by_max_tokens_are_never_carried_out(ask_for: AskFor) -> None:
    cut = tool("write_file", id="tu_1", raw='{"path": "a.txt", "content": "half')
    asked = await ask_for(reply("I write.", tools=[cut], stop_reason="max_tokens"))
    assert asked.reply.calls == []
    assert [(call.provider_call_id, call.tool, call.args) for call in asked.reply.cut] == [("tu_1", "write_file", {})]
    assert asked.reply.blocks[-1] == {"type": "tool_use", "id": "tu_1", "name": "write_file", "input": {}}


async def test_whole_arguments_before_max_tokens_are_not_carried_out_either(ask_for: AskFor) -> None:
    asked = await ask_for(reply(tools=[CALL], stop_reason="max_tokens"))
    assert asked.reply.calls == [] and [call.tool for call in asked.reply.cut] == [CALL.name]


async def test_text_cut_by_max_tokens_is_a_reply_that_says_so(ask_for: AskFor) -> None:
    asked = await ask_for(reply("Once upon", stop_reason="max_tokens"))
    assert (asked.reply.stop_reason, asked.reply.blocks) == ("max_tokens", [{"type": "text", "text": "Once upon"}])


async def test_a_call_without_arguments_has_none(ask_for: AskFor) -> None:
    asked = await ask_for(reply(tools=[tool("read_file", id="tu_1", raw="")]))
    assert asked.reply.calls == [RequestedCall("tu_1", "read_file", {})]


async def test_arguments_may_come_with_the_announcement(ask_for: AskFor) -> None:
    made = reply(tools=[tool("read_file", id="tu_1", raw="")]).without("input_json_delta")
    steps = [
        {**step, "content_block": {**step["content_block"], "input": {"path": "b"}}}
        if isinstance(step, dict) and step["type"] == "content_block_start"
        else step
        for step in made.steps
    ]
    asked = await ask_for(Reply(tuple(steps)))
    assert asked.reply.calls == [RequestedCall("tu_1", "read_file", {"path": "b"})]


@pytest.mark.scenario("a38")
async def test_lone_surrogates_are_replaced_at_the_boundary(ask_for: AskFor) -> None:
    asked = await ask_for(
        reply(
            "x\ud800y", "half \ud83d", "\ude00 pair", "end \ud83d", tools=[tool("f", id="tu_1", raw='{"c": "\\ud99c"}')]
        )
    )
    assert asked.text == "x\ufffdyhalf 😀 pairend \ufffd"
    assert asked.reply.blocks[0] == {"type": "text", "text": asked.text}
    assert asked.reply.calls[0].args == {"c": "\ufffd"}


async def test_a_text_in_which_there_is_nothing_is_left_out(ask_for: AskFor) -> None:
    asked = await ask_for(reply("\n\n", tools=[CALL]))
    assert [block["type"] for block in asked.reply.blocks] == ["tool_use"]


async def test_pings_are_nothing(ask_for: AskFor) -> None:
    asked = await ask_for(reply("a", "b").insert({"type": "ping"}, after="text_delta"))
    assert asked.text == "ab"
    assert asked.reply.stop_reason == "end_turn"


NOT_BEGUN: dict[str, Reply] = {
    "a delta before message_start": reply("I write.").without("message_start"),
    "nothing but signs of life": Reply(({"type": "ping"}, {"type": "ping"})),
    "nothing at all": Reply(()),
}


@pytest.mark.parametrize("name", NOT_BEGUN)
async def test_a_reply_that_never_began_is_none_and_may_be_asked_for_again(ask_for: AskFor, name: str) -> None:
    asked = await ask_for(NOT_BEGUN[name])
    assert asked.failure.reason in ("InvalidReply", "StreamBroken") and asked.failure.retry
    assert asked.text == "" and "Nothing" in asked.failure.message


@pytest.mark.parametrize("ending", [Ending.RESET, Ending.CUT, Ending.EOF])
async def test_a_whole_reply_stays_whole_however_its_connection_ends(ask_for: AskFor, ending: Ending) -> None:
    asked = await ask_for(TEXT_THEN_CALL.ending(ending, after="message_stop"))
    assert asked.text == "I write." and [call.tool for call in asked.reply.calls] == [CALL.name]


async def test_a_large_delta_is_whole(ask_for: AskFor) -> None:
    asked = await ask_for(reply("é" * 500_000))
    assert asked.text == "é" * 500_000


async def test_a_body_in_single_bytes_is_the_same_reply(ask_for: AskFor) -> None:
    asked = await ask_for(reply("😀é", tools=[CALL]).chunked(1))
    assert asked.text == "😀é"
    assert asked.reply.calls[0].args == {"path": "a.txt", "content": "half"}


HTTP: dict[str, tuple[Any, str, bool, int | None]] = {
    "429 with seconds": (http_error("rate_limit_error", retry_after="2"), "RateLimited", True, 2000),
    "429 with milliseconds": (http_error("rate_limit_error", retry_after_ms="150"), "RateLimited", True, 150),
    "429 with nonsense": (http_error("rate_limit_error", retry_after="soon"), "RateLimited", True, None),
    "429 for good": (http_error("rate_limit_error", x_should_retry="false"), "RateLimited", False, None),
    "529": (http_error("overloaded_error"), "Overloaded", True, None),
    "503": (HttpReply(503, b"busy", {"retry-after": "1"}), "Overloaded", True, 1000),
    "500 as a page": (
        HttpReply(500, b"<html>oops</html>", {"content-type": "text/html"}),
        "ModelUnreachable",
        True,
        None,
    ),
    "502": (HttpReply(502, b""), "ModelUnreachable", True, None),
    "400": (http_error("invalid_request_error", "messages: bad"), "RequestRefused", False, None),
    "400 too long": (
        http_error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "ContextTooLong",
        False,
        None,
    ),
    "413": (http_error("request_too_large"), "ContextTooLong", False, None),
    "401": (http_error("authentication_error", "invalid x-api-key"), "KeyRefused", False, None),
    "403": (http_error("permission_error"), "KeyRefused", False, None),
    "404": (http_error("not_found_error", "model: nope"), "RequestRefused", False, None),
    "402": (http_error("billing_error"), "RequestRefused", False, None),
    "redirect": (HttpReply(307, b"", {"location": "http://127.0.0.1:1/"}), "RequestRefused", False, None),
    "200 but a page": (HttpReply(200, b"<html>", {"content-type": "text/html"}), "InvalidReply", False, None),
    "no headers ever": (NoAnswer(), "ModelUnreachable", True, None),
    "connection closed": (NoAnswer(Ending.CUT), "ModelUnreachable", True, None),
    "connection reset": (NoAnswer(Ending.RESET), "ModelUnreachable", True, None),
}


@pytest.mark.parametrize("name", HTTP)
async def test_an_answer_that_is_no_stream_is_one_typed_error(ask_for: AskFor, fake_api: FakeApi, name: str) -> None:
    answer, reason, retry, retry_after_ms = HTTP[name]
    asked = await ask_for(answer)
    assert (asked.failure.reason, asked.failure.retry, asked.failure.retry_after_ms) == (reason, retry, retry_after_ms)
    assert len(fake_api.requests) == 1, "the SDK must not try again by itself"


async def test_a_refused_request_carries_the_servers_words_and_status(ask_for: AskFor) -> None:
    asked = await ask_for(http_error("invalid_request_error", "messages: bad"))
    assert asked.failure.data == {"status": 400}
    assert "messages: bad" in asked.failure.message


async def test_retry_after_may_be_a_date(ask_for: AskFor) -> None:
    soon = SystemClock().now_ms() // 1000 + 30
    asked = await ask_for(http_error("rate_limit_error", retry_after=formatdate(soon, usegmt=True)))
    assert asked.failure.retry_after_ms is not None
    assert 20_000 <= asked.failure.retry_after_ms <= 30_000


async def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings = ModelSettings(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        model = AnthropicModel(settings, Credentials(tmp_path / "none", from_environment="k"))
        asked = await ask(model)
        await model.close()
    assert (asked.failure.reason, asked.failure.retry) == ("ModelUnreachable", True)


async def test_closing_the_iterator_closes_the_connection(model: AnthropicModel, fake_api: FakeApi) -> None:
    gate = Gate()
    fake_api.push(reply("a", "b").insert(gate, after="text_delta").ending(Ending.STALL, after="message_delta"))
    items = model.stream(request_of())
    assert await anext(items) == TextDelta("a")
    await items.aclose()
    gate.release()
    await fake_api.quiet()


async def test_cancelling_the_reader_closes_the_connection(model: AnthropicModel, fake_api: FakeApi) -> None:
    gate = Gate()
    fake_api.push(reply("a", "b").insert(gate, after="text_delta").ending(Ending.STALL, after="message_delta"))
    reading = asyncio.create_task(ask(model))
    await gate.reached()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    gate.release()
    await fake_api.quiet()


async def test_streams_run_side_by_side(model: AnthropicModel, fake_api: FakeApi) -> None:
    gate = Gate()
    fake_api.push(reply("slow", "er").insert(gate, after="text_delta"), reply("quick"))
    slow = asyncio.create_task(ask(model))
    await gate.reached()
    assert (await ask(model)).text == "quick"
    gate.release()
    assert (await slow).text == "slower"


class SetClock(SystemClock):
    """A clock that the test sets forward."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


async def test_a_server_that_only_sends_signs_of_life_has_stalled(fake_api: FakeApi, tmp_path: Path) -> None:
    clock, gate, ping = SetClock(), Gate(), {"type": "ping"}
    fake_api.push(
        reply("a", "b").insert(ping, gate, ping, after="text_delta").ending(Ending.STALL, after="ping", nth=2)
    )
    credentials = Credentials(tmp_path / "none", from_environment=fake_api.key)
    model = AnthropicModel(ModelSettings(base_url=fake_api.url, stall_s=20), credentials, clock)
    items = model.stream(request_of())
    assert await anext(items) == TextDelta("a")
    await gate.reached()
    clock.ahead_s = 101
    gate.release()
    with pytest.raises(ModelError) as caught:
        await anext(items)
    assert (caught.value.reason, caught.value.retry) == ("StreamStalled", True)
    assert "signs of life" in caught.value.message
    await model.close()


async def test_no_key_is_said_before_anything_is_sent(fake_api: FakeApi, tmp_path: Path) -> None:
    model = AnthropicModel(ModelSettings(base_url=fake_api.url), Credentials(tmp_path / "none"))
    asked = await ask(model)
    assert asked.failure.reason == "KeyMissing"
    assert "standfast login" in asked.failure.message
    assert fake_api.requests == []
    await model.close()


async def test_a_credentials_file_that_cannot_be_used_is_a_missing_key_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text("{")
    model = AnthropicModel(ModelSettings(), Credentials(tmp_path / "credentials.json"))
    asked = await ask(model)
    assert asked.failure.reason == "KeyMissing"
    assert "credentials.json cannot be used" in asked.failure.message


async def test_a_key_set_elsewhere_is_found_after_a_refusal(fake_api: FakeApi, tmp_path: Path) -> None:
    fake_api.push(reply("hello"))
    credentials = Credentials(tmp_path / "credentials.json", from_environment="old-key")
    model = AnthropicModel(ModelSettings(base_url=fake_api.url), credentials)
    assert (await ask(model)).failure.reason == "KeyRefused"
    Credentials(tmp_path / "credentials.json").set("anthropic", fake_api.key)
    assert (await ask(model)).text == "hello"
    await model.close()


@pytest.mark.requirement("I12")
async def test_a_server_that_quotes_the_key_does_not_get_it_into_a_message(ask_for: AskFor, fake_api: FakeApi) -> None:
    asked = await ask_for(http_error("invalid_request_error", f"bad key {fake_api.key} given"))
    assert fake_api.key not in asked.failure.message
    assert asked.failure.__cause__ is None
    assert asked.failure.__suppress_context__
    assert fake_api.key not in repr(asked.failure.data)
    in_stream = await ask_for(reply("a").insert(error_event("api_error", f"key {fake_api.key}"), after="text_delta"))
    assert fake_api.key not in in_stream.failure.message


async def test_the_environments_proxy_and_the_sdks_own_variables_change_nothing(
    fake_api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    fake_api.push(reply("hello"))
    credentials = Credentials(tmp_path / "none", from_environment=fake_api.key)
    model = AnthropicModel(ModelSettings(base_url=fake_api.url), credentials)
    assert (await ask(model)).text == "hello"
    assert not any("other" in value for value in fake_api.requests[0].headers.values())
    await model.close()


async def test_the_sdk_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, standfast.model.choose; sys.exit('anthropic' in sys.modules or 'httpx2' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0
