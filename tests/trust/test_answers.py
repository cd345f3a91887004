"""Answers to a permission: the first that fits counts, once, and everybody is told which it was (ATK-35, issue G.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_api import FakeApi, reply, tool
from support import Editor, RunningDaemon, open_editor, open_socket
from support.editor import Json


def writing(name: str) -> tuple[Any, Any]:
    return reply("", tools=[tool("write_file", path=name, content="x\n")]), reply("Done.")


async def asked(editor: Editor, count: int = 1) -> Json:
    await editor.wait_for(lambda: len(editor.asked) >= count, "a question")
    return editor.asked[count - 1]


@pytest.mark.scenario("ATK-35")
async def test_a_late_answer_of_another_client_changes_nothing_and_it_was_told(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    async with open_editor(daemon.home, [workspace]) as first, open_socket(daemon.home, [workspace]) as second:
        session_id = await first.create(workspace, mode="ask")
        await second.attach(session_id)
        fake_api.push(*writing("new.txt"))
        run_id = await first.start(session_id, "go")
        question = await asked(first)
        assert (await asked(second))["digest"] == question["digest"]
        first.decide("deny")
        told = await second.wait_for(lambda: second.told("standfast/permission/resolved"), "word of the answer")
        assert told[0] == {"callId": question["callId"], "decision": "deny"}
        second.decide("allow")
        await first.run_end(run_id)
        await second.request("standfast/daemon/status", {})
        assert not (workspace / "new.txt").exists()
        resolved = first.events(session_id, "permission_resolved")
        assert [(event["decision"], bool(event["by"])) for event in resolved] == [("deny", True)]


@pytest.mark.scenario("ATK-35")
async def test_an_answer_for_other_content_or_an_unknown_word_is_none(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    async with open_editor(daemon.home, [workspace]) as editor:
        session_id = await editor.create(workspace, mode="ask", attach=False)
        given: list[Json] = []

        async def wrong(question: Json) -> Json:
            given.append(question)
            editor.news.set()
            return [{"decision": "allow", "digest": "0" * 64}, {"decision": "always", "digest": question["digest"]}][
                len(given) - 1
            ]

        editor.answer("standfast/permission/request", wrong)
        await editor.attach(session_id)
        fake_api.push(*writing("new.txt"))
        run_id = await editor.start(session_id, "go")
        await editor.wait_for(lambda: given, "a question")
        answer = await editor.attach(session_id)
        await editor.wait_for(lambda: len(given) == 2, "the question again: it is still open")
        assert [one["callId"] for one in answer["permissions"]] == [given[0]["callId"]]
        answer = await editor.attach(session_id)
        assert answer["permissions"], "still open"
        assert not (workspace / "new.txt").exists()
        await editor.request("standfast/run/cancel", {"runId": run_id})
        told = await editor.wait_for(lambda: editor.told("standfast/permission/resolved"), "word that it has expired")
        assert told[-1] == {"callId": given[0]["callId"], "decision": "expired"}
        assert not (workspace / "new.txt").exists()


@pytest.mark.scenario("ATK-35")
async def test_an_answer_given_once_is_not_one_to_the_same_call_of_another_run(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    """`allow` is for one call: the same write, wanted again, is asked again under another id."""
    async with open_editor(daemon.home, [workspace]) as editor:
        session_id = await editor.create(workspace, mode="ask")
        editor.decide("allow")
        for _ in range(2):
            fake_api.push(reply("", tools=[tool("run_command", command="echo same")]), reply("Done."))
            await editor.run_end(await editor.start(session_id, "go"))
        one, two = editor.asked
        assert one["callId"] != two["callId"]
        other = await editor.create(workspace, mode="ask")
        editor.decide("allowSession")
        for session in (session_id, session_id, other):
            fake_api.push(reply("", tools=[tool("run_command", command="echo same")]), reply("Done."))
            await editor.run_end(await editor.start(session, "go"))
        assert [one["sessionId"] for one in editor.asked[2:]] == [session_id, other]
