"""Random files and random patches: put exactly where they were meant or nowhere; undo gives back bytes and modes (issue B, 2)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from files_desk import Desk, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from standfast.files.difference import changed_blocks
from standfast.files.patch_apply import Applied, apply_hunks
from standfast.files.patch_parse import Hunk, parse_patch
from standfast.files.text import FileText, read_text, split_lines

WORDS = st.sampled_from(
    ["a", "b", "b ", "\tb", "é", "e\u0301", "x\u2028y", "", "}", "return", "–", "-", "long " * 200, "\u00a0"]
)
ENDING = st.sampled_from(["\n", "\r\n"])


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, list[str], list[str]]:
    """A file: its bytes, its lines, their endings (mixed, BOM, no final newline, bytes that are no UTF-8)."""
    lines = draw(st.lists(st.one_of(WORDS, st.text("ab \té", max_size=4)), min_size=1, max_size=14))
    mixed = draw(st.booleans())
    one = draw(ENDING)
    endings = [draw(ENDING) if mixed else one for _ in lines]
    if draw(st.booleans()) and lines[-1]:
        endings[-1] = ""
    text = "".join(line + ending for line, ending in zip(lines, endings, strict=True))
    bom = b"\xef\xbb\xbf" if draw(st.booleans()) else b""
    return bom + text.encode(), lines, endings


@st.composite
def patched(draw: st.DrawFn) -> tuple[bytes, Hunk, bytes, int]:
    """A file, a hunk made from one of its places, what it has to become there, and the place."""
    data, lines, endings = draw(bodies())
    start = draw(st.integers(0, len(lines) - 1))
    stop = draw(st.integers(start + 1, min(len(lines), start + 4)))
    ops: list[tuple[str, str]] = []
    out: list[tuple[str, str]] = list(zip(lines[:start], endings[:start], strict=True))
    for line, ending in zip(lines[start:stop], endings[start:stop], strict=True):
        act = draw(st.sampled_from(["keep", "keep", "replace", "remove"]))
        new = draw(st.text("xyz", min_size=1, max_size=3)) if act == "replace" else ""
        if act == "keep":
            ops.append((" ", line))
            out.append((line, ending))
        elif act == "remove":
            ops.append(("-", line))
            if ops[-2:-1] and ops[-2][0] != " ":
                ops.pop()
                ops.append((" ", line))
                out.append((line, ending))
        else:
            if ops and ops[-1][0] != " ":
                ops.append((" ", line))
                out.append((line, ending))
                continue
            ops += [("-", line), ("+", new)]
            out.append((new, ending))
    out += zip(lines[stop:], endings[stop:], strict=True)
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    wanted = bom + "".join(line + ending for line, ending in out).encode()
    return data, Hunk((), tuple(ops)), wanted, start


def count_exact(lines: Sequence[str], old: Sequence[str]) -> list[int]:
    return [at for at in range(len(lines) - len(old) + 1) if list(lines[at : at + len(old)]) == list(old)]


@pytest.mark.requirement("R11.3")
@given(patched())
@settings(max_examples=400, deadline=None)
def test_a_hunk_is_put_exactly_where_it_was_meant_or_nowhere(case: tuple[bytes, Hunk, bytes, int]) -> None:
    data, hunk, wanted, start = case
    text = read_text(data)
    assert isinstance(text, FileText)
    result = apply_hunks(text, [hunk])
    places = count_exact(split_lines(text.text).bodies, hunk.old)
    assert start in places
    if len(places) > 1:
        assert not isinstance(result, Applied)
        assert result.reason == "ambiguous"
        assert [place + 1 for place in places] == result.hunks[0].candidate_lines
        chosen = apply_hunks(text, [hunk], chosen={0: start + 1})
        assert isinstance(chosen, Applied)
        assert chosen.text.encode() == wanted
    else:
        assert isinstance(result, Applied), result
        assert result.text.encode() == wanted
        assert result.hunks[0].line == start + 1


@st.composite
def patched_at_several_places(draw: st.DrawFn) -> tuple[bytes, list[Hunk], bytes]:
    """A file, hunks made from several of its places in order (their contexts may overlap), and what it has to become."""
    data, lines, endings = draw(bodies())
    edges = sorted(draw(st.sets(st.integers(0, len(lines)), min_size=2, max_size=6)))
    hunks: list[Hunk] = []
    out: list[tuple[str, str]] = []
    at = 0
    for start, stop in zip(edges[::2], edges[1::2], strict=False):
        first, last = draw(st.integers(max(0, start - 2), start)), draw(st.integers(stop, min(len(lines), stop + 2)))
        new = [f"{word}{len(hunks)}" for word in draw(st.lists(st.text("xyz", max_size=2), max_size=stop - start))]
        ops = [(" ", line) for line in lines[first:start]] + [("-", line) for line in lines[start:stop]]
        ops += [("+", line) for line in new] + [(" ", line) for line in lines[stop:last]]
        hunks.append(Hunk((), tuple(ops), end_of_file=last == len(lines) and draw(st.booleans())))
        out += zip(lines[at:start], endings[at:start], strict=True)
        out += zip(new, endings[start:], strict=False)
        at = stop
    if at == len(lines) and new and not endings[-1]:
        out[-1] = (out[-1][0], "")  # a file without a final newline stays one
    out += zip(lines[at:], endings[at:], strict=True)
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    return data, hunks, bom + "".join(line + ending for line, ending in out).encode()


@pytest.mark.requirement("R11.3")
@given(patched_at_several_places())
@settings(max_examples=300, deadline=None)
def test_several_hunks_are_put_where_all_of_them_were_meant_or_nowhere(case: tuple[bytes, list[Hunk], bytes]) -> None:
    data, hunks, wanted = case
    text = read_text(data)
    assert isinstance(text, FileText)
    result = apply_hunks(text, hunks)
    if isinstance(result, Applied):
        assert result.text.encode() == wanted
    else:
        assert result.reason == "ambiguous", "each hunk's text is there"


@given(bodies(), st.binary(max_size=6))
@settings(max_examples=200, deadline=None)
def test_reading_and_writing_text_gives_back_every_byte(case: tuple[bytes, list[str], list[str]], tail: bytes) -> None:
    data = case[0] + tail.replace(b"\0", b"")
    text = read_text(data)
    if isinstance(text, FileText):
        assert text.encode() == data
        assert split_lines(text.text).join() == text.text


@given(st.lists(WORDS, max_size=20), st.lists(WORDS, max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_difference_of_two_texts_leads_from_one_to_the_other(old: list[str], new: list[str]) -> None:
    built: list[str] = []
    at = 0
    for old_from, old_to, new_from, new_to in changed_blocks(old, new):
        built += old[at:old_from] + new[new_from:new_to]
        at = old_to
    assert built + old[at:] == new


@st.composite
def workspaces(draw: st.DrawFn) -> tuple[dict[str, tuple[bytes, int]], str]:
    """A few files, and a patch that touches some of them."""
    files: dict[str, tuple[bytes, int]] = {}
    sections: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        name = f"d{number % 2}/f{number}"
        data, hunk, _, _ = draw(patched())
        if draw(st.booleans()):
            data += draw(st.sampled_from([b"", b"\n\xe9\xff latin"]))
        files[name] = (data, draw(st.sampled_from([0o644, 0o755, 0o600, 0o640])))
        kind = draw(st.sampled_from(["update", "update", "delete", "move", "add", "none"]))
        body = "\n".join(op + text for op, text in hunk.lines)
        if kind == "update":
            sections.append(f"*** Update File: {name}\n@@\n{body}")
        elif kind == "move":
            sections.append(f"*** Update File: {name}\n*** Move to: m/{number}\n@@\n{body}")
        elif kind == "delete":
            sections.append(f"*** Delete File: {name}")
        elif kind == "add":
            sections.append(f"*** Add File: n/{number}/x\n+{number}")
    return files, "\n".join(("*** Begin Patch", *sections, "*** End Patch"))


@given(workspaces())
@settings(max_examples=60, deadline=None)
def test_applying_and_undoing_is_the_identity_and_a_refusal_changes_nothing(
    case: tuple[dict[str, tuple[bytes, int]], str],
) -> None:
    files, patch = case
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, (data, mode) in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
            (folder / name).chmod(mode)
        before = snapshot(folder)
        desk = Desk(folder)
        outcome = asyncio.run(desk.call("apply_patch", patch=patch))
        if outcome.status == "ok" and outcome.files:
            assert snapshot(folder) != before
            undone = asyncio.run(desk.undo(outcome))
            assert undone.status == "ok", undone
            again = asyncio.run(desk.undo(undone))
            assert again.status == "ok", again
            assert asyncio.run(desk.undo(again)).status == "ok"
        after = {name: value for name, value in snapshot(folder).items() if value != "directory"}
        assert after == before


@given(st.text("@+-* \nab", max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_text_at_all_is_parsed_or_refused_by_a_fixed_word(text: str) -> None:
    result = parse_patch(f"*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch")
    assert isinstance(result, tuple) or result.reason in {"malformed", "no_hunks", "empty_patch"}


def test_200_hunks_on_50_000_lines_do_not_cost_200_scans() -> None:
    """Counted, not timed: each hunk looks at few places (the bench measures time beside decode and split)."""
    lines = [
        f"    value_{number} = compute({number % 97})" if number % 3 else "    return None" for number in range(50_000)
    ]
    text = FileText("\n".join(lines) + "\n")
    hunks: list[Hunk] = []
    for number in range(200):
        at = number * 249 + 1
        body = [(" ", lines[at - 1]), ("-", lines[at]), ("+", lines[at] + "  # changed"), (" ", lines[at + 1])]
        hunks.append(Hunk((), tuple(body)))
    counted = Counting(text.text)
    result = apply_hunks(FileText(counted), hunks)
    assert isinstance(result, Applied)
    assert result.text.text.count("# changed") == 200
    assert counted.splits == 1


class Counting(str):
    """A text that counts how often it is cut into lines."""

    splits = 0

    def split(self, *args: object, **kwargs: object) -> list[str]:  # type: ignore[override]
        self.splits += 1
        return super().split(*args, **kwargs)  # type: ignore[arg-type]
