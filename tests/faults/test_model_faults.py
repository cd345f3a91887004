"""Each fault of a model's server, through the daemon: what the log has, what the person reads, and that nothing was carried out.

reliability.md §4. tests/model holds the same faults to the model's own border; here the run, the log and the wire are asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fake_api import Ending, FakeApi, HttpReply, NoAnswer, Request, error_event, http_error, reply, tool
from fake_api.replies import Answer, Reply, names_of
from fake_api.requests import blocks_of
from standfast.cli.client import Json
from support import Editor, RunningDaemon, configure, open_socket, start_daemon
from support.daemon import places

CALL = tool("write_file", id="tu_1", path="made.txt", content="half")
SAID = "I write."
WRITES = reply(SAID, tools=[CALL])
MENDED = "Now it went well."


@dataclass
class Trouble:
    """The fake's script: what was put in, in order, then whole replies for ever."""

    answers: list[Answer] = field(default_factory=list[Answer])

    def __call__(self, _: Request) -> Answer:
        return self.answers.pop(0) if self.answers else reply(MENDED)


@dataclass(frozen=True)
class House:
    """One daemon for all the faults: none of them may harm it."""

    daemon: RunningDaemon
    api: FakeApi
    trouble: Trouble


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    place = tmp_path_factory.mktemp("faults") / "home"
    place.mkdir(mode=0o700)
    trouble = Trouble()
    with FakeApi(trouble) as api:
        configure(place, model={"base_url": api.url, "stall_s": 2}, run={"retry_base_ms": 1})
        daemon = start_daemon(place, {"ANTHROPIC_API_KEY": api.key})
        yield House(daemon, api, trouble)
        assert daemon.end() == 0
        assert not api.refused


@pytest.fixture
async def desk(house: House, workspace: Path) -> AsyncGenerator[Editor]:
    house.trouble.answers.clear()
    async with open_socket(house.daemon.home, [workspace]) as editor:
        yield editor


PASSING: dict[str, tuple[Answer, str]] = {
    "429": (http_error("rate_limit_error"), "RateLimited"),
    "529": (http_error("overloaded_error"), "Overloaded"),
    "500 as a page": (HttpReply(500, b"<html>oops</html>", {"content-type": "text/html"}), "ModelUnreachable"),
    "headers never": (NoAnswer(), "ModelUnreachable"),
    "connection reset": (NoAnswer(Ending.RESET), "ModelUnreachable"),
    "cut mid-stream": (WRITES.ending(Ending.CUT, after="text_delta"), "StreamBroken"),
    "RST mid-stream": (WRITES.ending(Ending.RESET, after="input_json_delta"), "StreamBroken"),
    "clean end without message_stop": (WRITES.ending(Ending.EOF, after="content_block_stop", nth=2), "StreamBroken"),
    "error event": (WRITES.insert(error_event(), after="text_delta"), "Overloaded"),
    "malformed SSE": (WRITES.insert(b"event: x\ndata: {oops\n\n", after="text_delta"), "StreamBroken"),
    "delta for an unknown index": (
        WRITES.insert(
            {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
            after="text_delta",
        ),
        "InvalidReply",
    ),
    "garbage in a call": (reply(SAID, tools=[tool("write_file", raw="{nope")]), "InvalidReply"),
    "a call cut short": (reply(SAID, tools=[tool("write_file", raw='{"path": "made.txt", "con')]), "InvalidReply"),
    "a call that is a list": (reply(SAID, tools=[tool("write_file", raw="[1, 2]")]), "InvalidReply"),
    "two calls with one id": (reply(SAID, tools=[CALL, CALL]), "InvalidReply"),
    "a second message_start": (WRITES.insert(reply("b").steps[0], after="text_delta"), "InvalidReply"),
    "stall": (WRITES.ending(Ending.STALL, after="text_delta"), "StreamStalled"),
}
"""What another try may mend: the answer and its reason."""

FINAL: dict[str, tuple[Answer, str, str]] = {
    "400": (http_error("invalid_request_error", "messages: bad"), "RequestRefused", "messages: bad"),
    "401": (http_error("authentication_error", "invalid x-api-key"), "KeyRefused", "standfast login"),
    "refusal": (reply(SAID, stop_reason="refusal"), "Refusal", ""),
    "pause_turn": (reply(SAID, stop_reason="pause_turn"), "UnknownStop", ""),
    "an unknown stop reason": (reply(SAID, tools=[CALL], stop_reason="because"), "UnknownStop", "because"),
    "an unknown event": (WRITES.insert({"type": "brand_new"}, after="text_delta"), "InvalidReply", "brand_new"),
    "an unknown block": (
        WRITES.insert(
            {"type": "content_block_start", "index": 1, "content_block": {"type": "hologram"}},
            after="content_block_stop",
        ),
        "InvalidReply",
        "hologram",
    ),
    "an event of 5 MB": (
        WRITES.insert(b'data: {"x": "' + b"x" * 5_000_000 + b'"}\n\n', after="text_delta"),
        "InvalidReply",
        "",
    ),
}
"""What ends the run: the answer, its reason, and what the sentence must name."""


def of_type(editor: Editor, type_: str) -> list[Json]:
    return editor.events(type_=type_)


def nothing_was_carried_out(editor: Editor, workspace: Path) -> None:
    assert of_type(editor, "tool_started") == [] and of_type(editor, "tool_call") == []
    assert not (workspace / "made.txt").exists()


def text_stayed(editor: Editor, answer: Answer) -> None:
    """What was streamed before the fault is in the history, and `model_error` marks its attempt as broken."""
    if isinstance(answer, Reply) and any("text_delta" in names_of(step) for step in answer.steps):
        said = "".join(event["text"] for event in of_type(editor, "assistant_chunk") if event["attempt"] == 1)
        assert said.startswith(SAID)


@pytest.mark.requirement("R4.4")
@pytest.mark.parametrize("name", PASSING)
async def test_a_fault_that_passes_is_told_and_asked_again_and_nothing_of_it_is_carried_out(
    house: House, desk: Editor, workspace: Path, name: str
) -> None:
    answer, reason = PASSING[name]
    house.trouble.answers = [answer]
    run_id = await desk.start(await desk.create(workspace), "write it")
    assert (await desk.run_end(run_id))["status"] == "succeeded"
    [error] = of_type(desk, "model_error")
    assert (error["attempt"], error["reason"]) == (1, reason)
    assert error["retryAfterMs"] >= 0
    assert "carried out" in error["message"], error["message"]
    assert [event["attempt"] for event in of_type(desk, "model_request")] == [1, 2]
    [message] = of_type(desk, "assistant_message")
    assert message["blocks"] == [{"type": "text", "text": MENDED}], "nothing of the broken reply is in the message"
    nothing_was_carried_out(desk, workspace)
    text_stayed(desk, answer)


@pytest.mark.requirement("R4.4")
@pytest.mark.parametrize("name", FINAL)
async def test_a_fault_that_stays_ends_the_run_with_a_reason_a_sentence_and_a_way_on(
    house: House, desk: Editor, workspace: Path, name: str
) -> None:
    answer, reason, named = FINAL[name]
    asked = len(house.api.requests)
    house.trouble.answers = [answer]
    run_id = await desk.start(await desk.create(workspace), "write it")
    end = await desk.run_end(run_id)
    assert (end["status"], end["error"]["reason"]) == ("failed", reason)
    assert named in end["error"]["message"] and end["error"]["message"].endswith("."), end["error"]["message"]
    assert len(house.api.requests) == asked + 1, "it was asked again"
    [error] = of_type(desk, "model_error")
    assert error["reason"] == reason and "retryAfterMs" not in error
    nothing_was_carried_out(desk, workspace)
    text_stayed(desk, answer)
    resumed = (await desk.request("standfast/run/resume", {"runId": run_id}))["runId"]
    assert (await desk.run_end(resumed))["status"] == "succeeded"


TOO_LONG = {
    "413": http_error("request_too_large"),
    "400": http_error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}


@pytest.mark.parametrize("name", TOO_LONG)
async def test_a_conversation_that_stays_too_long_ends_the_run_with_a_way_on(
    house: House, desk: Editor, workspace: Path, name: str
) -> None:
    """Once it is too long the history is summarised and asked again (tests/long); here nothing helps."""
    asked = len(house.api.requests)
    house.trouble.answers = [TOO_LONG[name]] * 10
    end = await desk.run_end(await desk.start(await desk.create(workspace), "write it"))
    assert (end["status"], end["error"]["reason"]) == ("failed", "ContextTooLong")
    assert "Compact the session" in end["error"]["message"]
    assert len(house.api.requests) <= asked + 4
    nothing_was_carried_out(desk, workspace)


@pytest.mark.scenario("c12")
async def test_a_call_cut_by_the_length_limit_is_answered_as_incomplete_and_the_run_goes_on(
    house: House, desk: Editor, workspace: Path
) -> None:
    cut = reply(SAID, tools=[tool("write_file", raw='{"path": "made.txt"')], stop_reason="max_tokens")
    house.trouble.answers = [cut.without("content_block_stop")]
    run_id = await desk.start(await desk.create(workspace), "write it")
    assert (await desk.run_end(run_id))["status"] == "succeeded"
    [result] = of_type(desk, "tool_result")
    assert result["status"] == "error" and "incomplete" in result["content"]
    assert of_type(desk, "tool_started") == []
    assert not (workspace / "made.txt").exists()


async def test_a_text_cut_by_the_length_limit_is_kept_and_ends_the_run_with_a_way_on(
    house: House, desk: Editor, workspace: Path
) -> None:
    house.trouble.answers = [reply(SAID, stop_reason="max_tokens")]
    run_id = await desk.start(await desk.create(workspace), "write it")
    end = await desk.run_end(run_id)
    assert (end["status"], end["error"]["reason"]) == ("failed", "OutputTooLong")
    assert "Resume the run" in end["error"]["message"] and "in the history" in end["error"]["message"]
    [message] = of_type(desk, "assistant_message")
    assert (message["blocks"], message["stopReason"]) == ([{"type": "text", "text": SAID}], "max_tokens")
    nothing_was_carried_out(desk, workspace)
    resumed = (await desk.request("standfast/run/resume", {"runId": run_id}))["runId"]
    assert (await desk.run_end(resumed))["status"] == "succeeded"


@pytest.mark.scenario("a38")
async def test_half_characters_are_replaced_before_they_are_stored_shown_or_sent_again(
    house: House, desk: Editor, workspace: Path
) -> None:
    call = tool("write_file", id="tu_1", raw='{"path": "made.txt", "content": "a\\ud99cb"}')
    house.trouble.answers = [reply("x\ud800y", "half \ud83d", "\ude00 pair", tools=[call])]
    session_id = await desk.create(workspace)
    assert (await desk.run_end(await desk.start(session_id, "write it")))["status"] == "succeeded"
    assert of_type(desk, "assistant_message")[0]["blocks"][0]["text"] == "x\ufffdyhalf \U0001f600 pair"
    assert (workspace / "made.txt").read_text() == "a\ufffdb"
    assert (await desk.run_end(await desk.start(session_id, "go on")))["status"] == "succeeded"
    assert not house.api.refused, "the history is sent again, and its body is whole"


@pytest.mark.parametrize(("megabytes", "reason"), [(3, ""), (10, "InvalidReply")])
async def test_a_piece_of_text_may_be_large_up_to_a_limit_that_is_told(
    house: House, desk: Editor, workspace: Path, megabytes: int, reason: str
) -> None:
    house.trouble.answers = [reply("x" * megabytes * 1_000_000)]
    end = await desk.run_end(await desk.start(await desk.create(workspace), "write it"))
    assert end.get("error", {}).get("reason", "") == reason
    if reason:
        assert "bytes" in end["error"]["message"] and "carried out" in end["error"]["message"]
    else:
        [message] = of_type(desk, "assistant_message")
        assert len(message["blocks"][0]["text"]) == megabytes * 1_000_000


async def test_a_server_that_stays_overloaded_is_asked_eight_times_and_then_the_run_can_be_resumed(
    house: House, desk: Editor, workspace: Path
) -> None:
    asked = len(house.api.requests)
    house.trouble.answers = [http_error("overloaded_error") for _ in range(8)]
    run_id = await desk.start(await desk.create(workspace), "write it")
    end = await desk.run_end(run_id)
    assert (end["status"], end["error"]["reason"]) == ("failed", "Overloaded")
    assert "resumed" in end["error"]["message"]
    assert len(house.api.requests) == asked + 8
    assert [event["attempt"] for event in of_type(desk, "model_error")] == list(range(1, 9))
    resumed = (await desk.request("standfast/run/resume", {"runId": run_id}))["runId"]
    assert (await desk.run_end(resumed))["status"] == "succeeded"


async def test_what_the_server_asks_to_wait_is_waited(house: House, desk: Editor, workspace: Path) -> None:
    house.trouble.answers = [http_error("rate_limit_error", retry_after="1")]
    run_id = await desk.start(await desk.create(workspace), "write it")
    assert (await desk.run_end(run_id))["status"] == "succeeded"
    [error] = of_type(desk, "model_error")
    assert error["retryAfterMs"] == 1000
    assert of_type(desk, "model_request")[1]["atMs"] - error["atMs"] >= 990, "the log's own times"


async def test_a_wait_before_the_next_try_can_be_cancelled(house: House, desk: Editor, workspace: Path) -> None:
    house.trouble.answers = [http_error("rate_limit_error", retry_after="50")]
    asked = len(house.api.requests)
    run_id = await desk.start(await desk.create(workspace), "write it")
    error = await desk.event("model_error")
    assert error["retryAfterMs"] == 50_000
    run = (await desk.request("standfast/run/cancel", {"runId": run_id}))["run"]
    assert run["status"] == "cancelled"
    assert (await desk.run_end(run_id))["status"] == "cancelled"
    assert len(house.api.requests) == asked + 1


async def test_ids_that_the_provider_uses_again_name_two_calls(house: House, desk: Editor, workspace: Path) -> None:
    """The model's server counts anew in each reply, as some gateways do: ours stay unique, and each has its own result."""
    for name in ("one", "two"):
        house.trouble.answers.append(reply(tools=[tool("write_file", id="call_0", path=f"{name}.txt", content=name)]))
    run_id = await desk.start(await desk.create(workspace), "write both")
    assert (await desk.run_end(run_id))["status"] == "succeeded"
    calls = [event["callId"] for event in of_type(desk, "tool_call")]
    assert len(set(calls)) == 2
    assert [event["callId"] for event in of_type(desk, "tool_result")] == calls
    assert [(workspace / f"{name}.txt").read_text() for name in ("one", "two")] == ["one", "two"]
    said = [block for message in house.api.requests[-1].messages for block in blocks_of(message)]
    sent = [block["id"] for block in said if block["type"] == "tool_use"]
    assert len(set(sent)) == 2, "the request to the model must not have one id twice"


async def test_the_scripted_model_goes_by_its_own_name(home: Path, workspace: Path) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home)
    async with open_socket(home, [workspace]) as desk:
        session_id = await desk.create(workspace, model="claude-of-some-kind")
        assert (await desk.run_end(await desk.start(session_id, "/list")))["status"] == "succeeded"
        assert {event["model"] for event in of_type(desk, "model_request")} == {"scripted"}
        assert {event["model"] for event in of_type(desk, "assistant_message")} == {"scripted"}
    daemon.end()


async def test_a_key_in_the_environment_serves_beside_a_credentials_file_that_cannot_be_used(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    fake_api.push(reply("Well."))
    configure(home, model={"base_url": fake_api.url})
    here = places(home).credentials
    here.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    here.write_text("{")
    daemon = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    async with open_socket(home, [workspace]) as desk:
        changed = await desk.wait_for(lambda: desk.told("standfast/daemon/changed"), "the person to be told")
        [said] = [one["message"] for one in changed[-1]["degraded"] if one["code"] == "CredentialsNotUsable"]
        assert str(here) in said and "standfast login" in said
        run_id = await desk.start(await desk.create(workspace), "hello")
        assert (await desk.run_end(run_id))["status"] == "succeeded"
    daemon.end()
    assert here.read_text() == "{", "a file that was not understood is the person's"
