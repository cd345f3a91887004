"""Kill -9 at each step of what is done to whole sessions: consistent, whole or not at all, and nothing runs by itself (issue F, 2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from long_session import CheckingModel, Desk, open_desk

from standfast.store import doctor

STEPS = [
    ("compact", "in_summary", 1), ("compact", "in_summary", 2), ("compact", "in_summary", 3),
    ("goal", "in_goal", 1), ("goal", "in_goal", 2),
    ("fork", "in_fork", 1), ("fork", "in_fork", 2),
    ("rebind", "in_rebind", 1), ("rebind", "in_rebind", 2),
    ("delete", "in_delete", 1), ("delete", "in_delete", 2),
    ("import", "in_import", 1), ("import", "in_import", 2),
]  # fmt: skip
MESSAGES = 400
"""Of the file that is taken in: more than one batch of events."""


def rollout(place: Path) -> None:
    lines = [{"type": "session_meta", "payload": {"id": "other", "cwd": str(place / "project")}}]
    for n in range(MESSAGES):
        content = [{"type": "input_text", "text": f"imported {n}"}]
        lines.append({"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}})  # type: ignore[dict-item]
    (place / "rollout.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


async def prepared(place: Path) -> str:
    (place / "elsewhere").mkdir()
    rollout(place)
    async with open_desk(place, CheckingModel(lambda _: ("Answer.", []), 40_000)) as desk:
        session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
        for n in range(3):
            await desk.turn(session_id, f"message {n}")
    return session_id


def killed(place: Path, deed: str, session_id: str, failpoint: str) -> None:
    words = [sys.executable, str(Path(__file__).with_name("deed.py")), str(place), deed, session_id]
    here = Path(__file__).parent
    env = {**os.environ, "FAILPOINTS": failpoint, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    done = subprocess.run(words, env=env, capture_output=True, timeout=60)
    assert done.returncode == -9, done.stderr.decode()


async def sessions_of(desk: Desk) -> list[str]:
    found, _ = await desk.sessions.list()
    return sorted(view.row.session_id for view in found)


@pytest.mark.parametrize(("deed", "point", "at"), STEPS)
@pytest.mark.scenario("a42")
async def test_killed_in_the_middle_it_is_whole_or_not_at_all(tmp_path: Path, deed: str, point: str, at: int) -> None:
    session_id = await prepared(tmp_path)
    killed(tmp_path, deed, session_id, f"{point}=kill@{at}")
    model = CheckingModel(lambda _: ("Answer.", []), 40_000)
    async with open_desk(tmp_path, model) as desk:
        names = await sessions_of(desk)
        assert not desk.sessions.busy()
        row = (await desk.sessions.get(session_id)).row
        assert names == [session_id], "a copy or an import is not there by half"
        assert (row.summary_seq > 0) == (deed == "compact" and at == 3)
        assert (row.workspace_uri == (tmp_path / "elsewhere").as_uri()) == (deed == "rebind" and at == 2)
        assert row.last_run_status == ("interrupted" if (deed, at) == ("goal", 2) else "succeeded")
        events = await desk.store.events(session_id, after_seq=0, limit=1000)
        assert sum(event.fact.type == "user_message" for event in events) == (4 if (deed, at) == ("goal", 2) else 3)
        assert model.bodies == []
        assert await desk.turn(session_id, "go on") == "succeeded"
        assert "message 0" in model.bodies[0].decode() or deed == "compact"
    assert (await doctor.check(tmp_path / "state" / "store.db"))["ok"]


@pytest.mark.requirement("R13.1")
async def test_a_queue_as_it_was_edited_and_what_was_put_into_the_run_survive_a_kill(tmp_path: Path) -> None:
    session_id = await prepared(tmp_path)
    killed(tmp_path, "queue", session_id, "never=kill")
    async with open_desk(tmp_path, CheckingModel(lambda _: ("Answer.", []), 40_000)) as desk:
        waiting, held = await desk.sessions.queue(session_id)
        assert [(message.position, message.text) for message in waiting] == [
            (0, "fifth"), (1, "third, edited"), (2, "second"),
        ]  # fmt: skip
        assert held
        assert desk.model.bodies == []
        assert await desk.turn(session_id, "ahead of them") == "succeeded"
        assert '"rather in blue"' in desk.model.bodies[0].decode()
        assert (await desk.sessions.queue(session_id))[1], "a new message leaves the queue held"
        await desk.sessions.queue_resume(session_id)
        for _ in range(3):
            assert await desk.end_of() == "succeeded"
        said = [json.loads(body)[2][-1]["content"][-1]["text"] for body in desk.model.bodies]
        assert said == ["ahead of them", "fifth", "third, edited", "second"]


async def test_an_import_that_was_killed_can_be_made_again_and_is_there_once(tmp_path: Path) -> None:
    session_id = await prepared(tmp_path)
    killed(tmp_path, "import", session_id, "in_import=kill@2")
    async with open_desk(tmp_path, CheckingModel(lambda _: ("Answer.", []), 40_000)) as desk:
        uri = (tmp_path / "rollout.jsonl").as_uri()
        taken = (await desk.sessions.import_(uri)).row.session_id
        assert (await desk.sessions.import_(uri)).row.session_id == taken
        assert await sessions_of(desk) == sorted([session_id, taken])
        events = await desk.store.events(taken, after_seq=0, limit=1000)
        told = [event for event in events if event.fact.type == "user_message"]
        assert len(told) == min(MESSAGES, len(told)) > 300
    assert (await doctor.check(tmp_path / "state" / "store.db"))["ok"]
