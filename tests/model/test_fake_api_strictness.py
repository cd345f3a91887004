"""The fake itself: each thing that the Messages API refuses is answered with 400 (or 401) and its words, what it takes with 200."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from fake_api import FakeApi, Gate, reply, sign, tool

Body = dict[str, Any]
TESTS = Path(__file__).parents[1]


def call(id: str = "tu_1", **more: Any) -> Body:
    return {"type": "tool_use", "id": id, "name": "read_file", "input": {}, **more}


def result(id: str = "tu_1", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": id, "content": "x", **more}


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def user(*content: Any) -> Body:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> Body:
    return {"role": "assistant", "content": list(content)}


def body(*messages: Body, **more: Any) -> Body:
    tools = [{"name": "read_file", "description": "d", "input_schema": {"type": "object"}}]
    return {"model": "m", "max_tokens": 9, "stream": True, "tools": tools, "messages": list(messages), **more}


def without(name: str) -> Body:
    made = body(user(text("hi")))
    del made[name]
    return made


def post(api: FakeApi, data: bytes | Body, path: str = "/v1/messages", **headers: str) -> tuple[int, str]:
    """Status and body of a bare request."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    sent = {
        "x-api-key": api.key,
        "anthropic-version": "2023-06-01",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    request = Request(api.url + path, raw, {name: value for name, value in sent.items() if value})
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


GO = user(text("go"))
THINKING: Body = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
MARK: Body = {"cache_control": {"type": "ephemeral"}}

REFUSED: dict[str, tuple[Body, str]] = {
    "no model": (without("model"), "model: Field required"),
    "no max_tokens": (without("max_tokens"), "max_tokens: Field required"),
    "no messages": (without("messages"), "messages: Field required"),
    "max_tokens 0": (body(GO, max_tokens=0), "max_tokens"),
    "an unknown field": (body(GO, colour="red"), "colour: Extra inputs"),
    "no message": (body(), "at least one message"),
    "not streaming": (body(GO, stream=False), "stream"),
    "the assistant first": (body(assistant(text("hi")), GO), "first message must use the user role"),
    "two user messages in a row": (body(GO, GO), "roles must alternate"),
    "a system role": (body({"role": "system", "content": "x"}), "role"),
    "an empty message": (body(user()), "non-empty content"),
    "an empty string": (body({"role": "user", "content": ""}), "non-empty content"),
    "an empty text block": (body(user(text(""))), "must be non-empty"),
    "a blank text block": (body(user(text(" \n"))), "non-whitespace"),
    "a blank string": (body({"role": "user", "content": " "}), "non-whitespace"),
    "an empty text block in a result": (
        body(GO, assistant(call()), user(result(content=[text("")]))),
        "must be non-empty",
    ),
    "an unanswered call at the end": (body(GO, assistant(call()), user(text("on"))), "without `tool_result`"),
    "an unanswered call in the middle": (
        body(GO, assistant(call()), user(text("a")), assistant(text("b")), user(text("c"))),
        "without `tool_result`",
    ),
    "one of two calls unanswered": (body(GO, assistant(call(), call("tu_2")), user(result())), "tu_2"),
    "a result for no call": (body(GO, assistant(text("a")), user(result())), "unexpected `tool_use_id`"),
    "a result in the first message": (body(user(result())), "unexpected `tool_use_id`"),
    "a result one message late": (
        body(GO, assistant(call()), user(result()), assistant(text("a")), user(result())),
        "unexpected `tool_use_id`",
    ),
    "two results for one call": (body(GO, assistant(call()), user(result(), result())), "single result"),
    "a result after text": (body(GO, assistant(call()), user(text("a"), result())), "without `tool_result`"),
    "a call id twice in one message": (body(GO, assistant(call(), call()), user(result())), "ids must be unique"),
    "a call id twice in a conversation": (
        body(GO, assistant(call()), user(result()), assistant(call()), user(result())),
        "ids must be unique",
    ),
    "a call id with a colon": (body(GO, assistant(call("a:1")), user(result("a:1"))), "should match pattern"),
    "a tool name with a space": (body(GO, assistant(call(name="a b")), user(result())), "should match pattern"),
    "a tool that is not among the tools": (
        body(GO, assistant(call(name="other")), user(result())),
        "not among the tools",
    ),
    "arguments that are no object": (body(GO, assistant(call(input=[1])), user(result())), "valid dictionary"),
    "a result with a bad flag": (body(GO, assistant(call()), user(result(is_error="yes"))), "valid boolean"),
    "a call by the user": (body(user(call())), "can not be in `user`"),
    "thinking by the user": (body(user(THINKING)), "can not be in `user`"),
    "a result by the assistant": (body(GO, assistant(result()), GO), "can not be in `assistant`"),
    "an unknown block": (body(user({"type": "smell"})), "can not be in"),
    "a block that is no object": (body(user("hi")), "valid content block"),
    "a field too many in a block": (body(user(text("hi", colour="red"))), "Extra inputs"),
    "altered thinking": (body(GO, assistant({**THINKING, "thinking": "HM"}, text("a")), GO), "Invalid `signature`"),
    "thinking without signature": (
        body(GO, assistant({"type": "thinking", "thinking": "hm"}, text("a")), GO),
        "Field required",
    ),
    "empty thinking": (body(GO, assistant({**THINKING, "thinking": ""}, text("a")), GO), "must contain thinking"),
    "redacted thinking of unknown origin": (
        body(GO, assistant({"type": "redacted_thinking", "data": "x"}, text("a")), GO),
        "Invalid `data`",
    ),
    "thinking at the end of a message": (body(GO, assistant(text("a"), THINKING), GO), "cannot be `thinking`"),
    "a prefill with trailing space": (body(GO, assistant(text("a "))), "trailing whitespace"),
    "a prefill": (body(GO, assistant(text("a"))), "prefill"),
    "five cache marks": (body(user(*[text(str(n), **MARK) for n in range(5)])), "maximum of 4"),
    "a bad cache mark": (body(user(text("a", cache_control={"type": "for ever"}))), "cache_control"),
    "a mark on thinking": (body(GO, assistant({**THINKING, **MARK}, text("a")), GO), "Extra inputs"),
    "a tool name twice": (body(GO, tools=[*body(GO)["tools"], *body(GO)["tools"]]), "must be unique"),
    "a tool without schema": (body(GO, tools=[{"name": "a"}]), "input_schema"),
    "a tool with a bad name": (body(GO, tools=[{"name": "a.b", "input_schema": {"type": "object"}}]), "pattern"),
    "an empty system block": (body(GO, system=[text("")]), "must be non-empty"),
}


@pytest.fixture(scope="module")
def api() -> Any:
    with FakeApi(lambda _request: reply("ok")) as made:
        yield made


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_refuses_is_refused(api: FakeApi, name: str) -> None:
    sent, words = REFUSED[name]
    status, answer = post(api, sent)
    assert status == 400
    error = json.loads(answer)
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert words in error["error"]["message"]
    assert api.refused[-1].error == error["error"]["message"]


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b'{"model": "m\xff"}',
        json.dumps(body(user(text("x\ud800")))).encode(),
        json.dumps(body(GO, temperature=float("nan"))).encode(),
        b'{"model": "a", "model": "b"}',
    ],
)
def test_a_body_that_is_no_strict_json_is_refused(api: FakeApi, raw: bytes) -> None:
    assert post(api, raw)[0] == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"x_api_key": ""}, 401), ({"x_api_key": "wrong"}, 401), ({"anthropic_version": ""}, 400)],
)
def test_missing_headers_are_refused(api: FakeApi, headers: dict[str, str], status: int) -> None:
    assert post(api, body(GO), **headers)[0] == status


ACCEPTED: dict[str, Body] = {
    "a word": body({"role": "user", "content": "hi"}),
    "calls answered first, in any order, then text": body(
        GO, assistant(text("a"), call(), call("tu_2")), user(result("tu_2"), result(content=[text("x")]), text("on"))
    ),
    "thinking untouched, with marks and a system": body(
        GO, assistant(THINKING, call()), user(result(is_error=True, **MARK)), system=[text("s", **MARK)]
    ),
    "an empty result": body(GO, assistant(call()), user(result(content=""))),
    "arguments that look like a mark": body(GO, assistant(call(input={"cache_control": 1})), user(result())),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_api_takes_is_taken(api: FakeApi, name: str) -> None:
    status, answer = post(api, ACCEPTED[name])
    assert (status, api.requests[-1].error) == (200, None)
    assert answer.startswith("event: message_start\n")
    assert answer.endswith('data: {"type": "message_stop"}\n\n')


def test_what_the_fake_sent_may_come_back_and_tokens_can_be_counted() -> None:
    answers = [reply("a", thinking="t", signature="odd", redacted="r", tools=[tool("unknown_tool")]), reply("b")]
    with FakeApi(answers) as api:
        post(api, body(GO))
        back = assistant(
            {"type": "thinking", "thinking": "t", "signature": "odd"},
            {"type": "redacted_thinking", "data": "r"},
            call("toolu_fake_1", name="unknown_tool"),
        )
        again = body(GO, back, user(result("toolu_fake_1")))
        assert post(api, again)[0] == 200
        counted = {name: again[name] for name in ("model", "messages", "tools")}
        assert json.loads(post(api, counted, "/v1/messages/count_tokens")[1])["input_tokens"] > 0
        assert api.requests[1].tool_results["toolu_fake_1"]["content"] == "x"


def test_an_empty_script_says_so_and_a_refused_request_uses_up_no_answer() -> None:
    with FakeApi([reply("only")]) as api:
        post(api, body())
        assert "only" in post(api, body(GO))[1]
        assert "no answer" in post(api, body(GO))[1]
        assert (len(api.accepted), len(api.refused)) == (2, 1)


def test_closing_ends_streams_that_stand_at_a_gate(client: Callable[[FakeApi], Any]) -> None:
    gate = Gate()
    with FakeApi([reply("a", "b").insert(gate, after="text_delta")]) as api:
        stream = client(api)
        gate.wait()
    with stream:
        assert b"message_stop" not in stream.read1()


@pytest.fixture
def client() -> Callable[[FakeApi], Any]:
    """Begin a stream without reading it to its end."""

    def begin(api: FakeApi) -> Any:
        headers = {"x-api-key": api.key, "anthropic-version": "1"}
        return urlopen(Request(api.url + "/v1/messages", json.dumps(body(GO)).encode(), headers), timeout=10)

    return begin


@pytest.mark.parametrize("kind", ["json", "py"])
def test_it_runs_as_a_process_from_a_script_file(tmp_path: Path, kind: str) -> None:
    script = tmp_path / f"script.{kind}"
    if kind == "json":
        entry = {"text": ["from a file"], "tools": [{"name": "read_file", "input": {}}]}
        script.write_text(json.dumps([{**entry, "gate": {"name": "here", "after": "text_delta"}}]))
    else:
        script.write_text("from fake_api import reply\ndef script(request):\n    return reply('from a file')\n")
    command = [sys.executable, "-m", "fake_api", "--script", str(script)]
    with subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        headers = {"x-api-key": "test-key", "anthropic-version": "1"}
        with urlopen(Request(url + "/v1/messages", json.dumps(body(GO)).encode(), headers), timeout=10) as answer:
            if kind == "json":
                urlopen(Request(url + "/_fake/gates/here/release", b""), timeout=10).close()
            assert "from a file" in answer.read().decode()
        with urlopen(url + "/_fake/requests", timeout=10) as answer:
            assert [each["status"] for each in json.load(answer)] == [200]
        process.stdin.close()
        assert process.wait(10) == 0
