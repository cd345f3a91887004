"""Output is shown live, bounded in the log and for the model, whole on disk, and never invalid (ATK-57, a39)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from process.place import Place
from standfast.process.environment import command_environment
from standfast.process.output import excerpt, poll
from standfast.process.record import Spec
from standfast.tools.commands_base import HEAD_MAX, LIVE_HEAD_MAX, LIVE_TAIL_MAX, TAIL_MAX
from standfast.tools.run_command import RunCommand
from support.waiting import until

NOTES_MAX = 2_000
"""Characters that the notes between head and tail may take."""


@pytest.fixture
def tool(place: Place) -> RunCommand:
    return RunCommand(place.commands)


@pytest.mark.scenario("a39")
async def test_an_emoji_at_the_cut_stays_whole_and_the_text_says_how_much_was_dropped(
    place: Place, tool: RunCommand
) -> None:
    text = "a" * (HEAD_MAX - 1) + "\U0001f600" + "z" * 10 + "\U0001f600" * (TAIL_MAX)
    (place.workspace / "text").write_text(text, encoding="utf-8")
    outcome = await place.call(tool, command="cat text")
    assert "\ufffd" not in outcome.content
    assert (
        f"a\U0001f600\n[… {len(text) - HEAD_MAX - TAIL_MAX} characters dropped here …]\n\U0001f600" in outcome.content
    )
    assert outcome.blob is not None
    assert outcome.blobs[outcome.blob].decode() == text


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=600), head=st.integers(0, 80), tail=st.integers(0, 80))
def test_whatever_bytes_a_command_prints_the_excerpt_is_their_text_with_a_gap(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, head: int, tail: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "excerpted"
    path.write_bytes(data)
    text = data.decode("utf-8", "replace")
    found = excerpt(path, head_max=head, tail_max=tail)
    assert len(found.head) + found.dropped + len(found.tail) == len(text)
    assert found.head == text[: len(found.head)]
    assert found.tail == text[len(text) - len(found.tail) :]
    assert len(found.head) <= head
    assert len(found.tail) <= tail
    assert not found.dropped or (len(found.head), len(found.tail)) == (head, tail)


@settings(max_examples=25, deadline=None)
@given(pieces=st.lists(st.text(max_size=8), max_size=3))
def test_polled_piece_by_piece_a_text_is_neither_doubled_nor_cut(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "polled"
    path.write_bytes(b"")
    seen, offset = "", 0
    data = "".join(pieces).encode("utf-8", "replace")
    for end in range(0, len(data) + 1):  # byte by byte: each character is cut everywhere
        path.write_bytes(data[:end])
        polled = poll(path, offset, characters_max=10_000)
        seen, offset = seen + polled.text, polled.offset
        assert polled.skipped == 0
    assert seen == data.decode()


@pytest.mark.scenario("ATK-57")
async def test_a_hundred_megabytes_are_whole_on_disk_and_small_everywhere_else(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="yes 0123456789 | head -c 100000000; echo END")
    assert (outcome.status, outcome.exit_code) == ("ok", 0)
    assert (place.spool / "call_1" / "output").stat().st_size == 100_000_004
    assert len(outcome.content) <= HEAD_MAX + TAIL_MAX + NOTES_MAX
    assert outcome.blobs == {}
    assert outcome.content.splitlines()[-2].endswith("END")
    shown = "".join(place.shown)
    assert len(shown) <= LIVE_HEAD_MAX + LIVE_TAIL_MAX + NOTES_MAX
    assert shown.endswith("END\n")
    assert f"[… {100_000_004 - LIVE_HEAD_MAX - LIVE_TAIL_MAX} characters dropped here …]" in shown


@pytest.mark.scenario("ATK-57")
async def test_one_endless_line_is_cut_too_and_kept_whole(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="yes a | tr -d '\\n' | head -c 3000000")
    assert len(outcome.content) <= HEAD_MAX + TAIL_MAX + NOTES_MAX
    assert outcome.blob is not None
    assert outcome.blobs[outcome.blob] == b"a" * 3_000_000


async def test_output_over_the_cap_keeps_its_beginning_and_its_end_and_says_so(place: Place) -> None:
    directory = place.spool / "call_cap"
    command = "yes 0123456789 | head -c 1000000; echo END"
    spec = Spec(["/bin/sh", "-c", command], command, str(place.workspace), "call_cap", "s", place.mark, output_max=1000)
    await place.commands.start(directory, spec, command_environment({}, place.mark))
    state = await place.commands.wait(directory)
    assert state.exit is not None
    kept = (directory / "output").read_bytes()
    assert state.exit.dropped_bytes == 1_000_004 - 1000 - 64 * 1024
    assert kept.startswith(b"0123456789\n")
    assert kept.endswith(b"END\n")
    assert f"[… {state.exit.dropped_bytes} bytes over the limit were not kept …]".encode() in kept
    assert len(kept) < 1000 + 64 * 1024 + 200


async def test_output_is_shown_while_the_command_still_runs(place: Place, tool: RunCommand) -> None:
    gate = place.workspace / "gate"
    os.mkfifo(gate)
    call = asyncio.ensure_future(place.call(tool, command="echo early; cat gate > /dev/null; echo late"))
    await until(lambda: "".join(place.shown) == "early\n", "the first line to be shown")
    assert not call.done()
    await asyncio.to_thread(gate.write_text, "go")
    assert (await call).status == "ok"
    assert "".join(place.shown) == "early\nlate\n"


async def test_bytes_that_are_no_text_are_replaced(place: Place, tool: RunCommand) -> None:
    outcome = await place.call(tool, command="printf 'a\\377b\\355\\240\\200c\\000d\\n'")
    outcome.content.encode("utf-8")
    assert outcome.content.startswith("a\ufffdb")
    assert Path(place.spool / "call_1" / "output").read_bytes().startswith(b"a\xffb")
