"""Finding one's way among many sessions: titles, words, what was written, what was spent (R3.1, R3.5, issue F.5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from long_session import CheckingModel, Desk, Reply, open_desk

from standfast.projections.session_changes import TITLE_MAX, title_of
from standfast.store import doctor, queries

WINDOW = 40_000


def answers(messages: list[dict[str, Any]]) -> Reply:
    said = messages[-1]["content"][-1]["text"]
    return f"About {said}: the zephyr blows over Łódź.", []


async def begun(desk: Desk, *texts: str) -> str:
    session_id = (await desk.sessions.create(desk.workspace.as_uri(), mode="auto")).row.session_id
    for text in texts:
        await desk.turn(session_id, text)
    return session_id


async def found(desk: Desk, query: str) -> list[str]:
    views, _ = await desk.sessions.list(query=query)
    return [view.row.session_id for view in views]


@pytest.mark.requirement("R3.5")
async def test_sessions_are_found_by_what_was_said_in_them_by_either(tmp_path: Path) -> None:
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        one = await begun(desk, "fix the parser of dates", "and the timezone too")
        two = await begun(desk, "write a haiku")
        assert await found(desk, "timezone") == [one]
        assert await found(desk, "parser dates") == [one]
        assert await found(desk, "haik") == [two], "the beginning of a word"
        assert await found(desk, "imezon") == [one], "a part of one, where none is it"
        assert set(await found(desk, "ZEPHYR")) == {one, two}
        assert set(await found(desk, "lodz zephyr".replace("lodz", "łódź"))) == {one, two}
        assert await found(desk, "nobody said that") == []
        for strange in ('"', "*", "AND", "a OR", "(", "text:", "-", "100%", "'; DROP TABLE"):
            await found(desk, strange)
        await desk.sessions.delete(one)
        assert await found(desk, "timezone") == []
        assert await found(desk, "zephyr") == [two]
    assert (await doctor.check(tmp_path / "state" / "store.db"))["ok"]


@pytest.mark.requirement("R3.5")
async def test_what_the_person_wrote_can_be_searched_over_all_sessions(tmp_path: Path) -> None:
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        await begun(desk, "first words", "修复解析器")
        await begun(desk, "second words")
        texts = [row.text for row in await desk.sessions.messages()]
        assert texts == ["second words", "修复解析器", "first words"]
        assert [row.text for row in await desk.sessions.messages(query="words")] == ["second words", "first words"]
        assert [row.text for row in await desk.sessions.messages(query="解析")] == ["修复解析器"]
        [*_, first] = (await desk.sessions.list())[0]
        fork = await desk.sessions.fork(first.row.session_id)
        await desk.turn(fork.row.session_id, "third words")
        assert [row.text for row in await desk.sessions.messages()] == ["third words", *texts], (
            "a copy is not told again"
        )


async def test_words_are_found_again_after_the_tables_were_made_anew(tmp_path: Path) -> None:
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        session_id = await begun(desk, "fix the parser")
    report = await doctor.rebuild(tmp_path / "state" / "store.db")
    assert report["ok"]
    assert report["rebuilt"] == []
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        assert await found(desk, "zephyr parser"[:6]) == [session_id]


async def test_a_title_is_the_first_words_unless_the_person_chose_one(tmp_path: Path) -> None:
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        session_id = await begun(desk, "fix the parser\nit is broken", "and more")
        assert (await desk.sessions.get(session_id)).row.title == "fix the parser"
        await desk.sessions.update(session_id, title="Dates")
        await desk.turn(session_id, "even more")
        assert (await desk.sessions.get(session_id)).row.title == "Dates"
    assert (await doctor.check(tmp_path / "state" / "store.db"))["ok"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  \n\n hello   there \n", "hello there"),
        ("", ""),
        ("word " * 40, ("word " * 12)[:TITLE_MAX].rsplit(" ", 1)[0] + "…"),
        ("x" * 200, "x" * TITLE_MAX + "…"),
    ],
)
def test_titles_are_short_and_of_whole_words(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.requirement("R3.3")
async def test_tokens_are_told_by_day_and_model_checkpoints_included(tmp_path: Path) -> None:
    model = CheckingModel(answers, WINDOW, usage_tokens=100, provider="anthropic")
    async with open_desk(tmp_path, model) as desk:
        session_id = await begun(desk, "one", "two")
        await desk.sessions.compact(session_id)
        [spent] = (await desk.sessions.runs()).statistics.spent
        assert (spent.model, spent.requests) == ("claude-test", 3)
        assert spent.usage["inputTokens"] == 210
        other = await begun(desk, "three")
        [spent] = (await desk.sessions.runs(session_id=other)).statistics.spent
        assert (spent.requests, spent.usage["inputTokens"]) == (1, 100)
    assert (await doctor.check(tmp_path / "state" / "store.db"))["ok"]


@pytest.mark.scenario("a33")
async def test_a_search_of_sessions_reads_no_event_that_does_not_match(tmp_path: Path) -> None:
    async with open_desk(tmp_path, CheckingModel(answers, WINDOW)) as desk:
        await begun(desk, "fix the parser")
    with sqlite3.connect(tmp_path / "state" / "store.db") as connection:
        plan = searched(connection, "parser")
        assert not any("SCAN events" in step or step == "SCAN e" for step in plan), plan
        assert any("SEARCH e USING INTEGER PRIMARY KEY" in step for step in plan), plan


def searched(connection: sqlite3.Connection, query: str) -> Sequence[str]:
    """The query plan of a search."""
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    queries.sessions(connection, workspace_uris=None, status=None, query=query, cursor=None, limit=50)
    connection.set_trace_callback(None)
    statement = next(each for each in seen if "FROM sessions" in each)
    return [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + statement)]
