"""Documents, columns and edits: pure, for every position encoding (d18)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

from standfast.editor.texts import Document, bare, from_client, minimal_edits, split_lines, to_client

ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXTS = st.text(st.sampled_from("ab\n\r\x0c\u2028é😋"), max_size=12)


def partial(start: types.Position, end: types.Position, text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(range=types.Range(start, end), text=text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc\n", ["a\r\n", "b\r", "c\n", ""]),
        ("a\x0cb\u2028c\x85d\ne", ["a\x0cb\u2028c\x85d\n", "e"]),
    ],
)
def test_lines_end_where_an_editor_ends_them(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@pytest.mark.scenario("d18")
@pytest.mark.parametrize(("encoding", "column", "quote"), [("utf-8", 7, 8), ("utf-16", 5, 6), ("utf-32", 4, 5)])
def test_an_insertion_after_an_emoji_lands_where_the_client_meant(encoding: str, column: int, quote: int) -> None:
    codec = PositionCodec(encoding)
    document = Document("file:///a.py", 1, 'x="😋"\n', codec)
    at = types.Position(0, column)
    document.change([partial(at, at, "y")], 2)
    assert document.text == 'x="😋y"\n'
    line = bare(document.lines[0])
    assert (to_client(line, 5, codec), to_client(line, 6, codec)) == (quote, quote + 1)


def test_a_column_within_a_character_means_before_it_and_beyond_the_end_means_the_end() -> None:
    codec = PositionCodec("utf-16")
    assert [from_client("a😋b", column, codec) for column in (0, 1, 2, 3, 4, 99)] == [0, 1, 1, 2, 3, 3]


@given(st.sampled_from(ENCODINGS), TEXTS, st.data())
def test_incremental_edits_do_what_they_say(encoding: str, text: str, data: st.DataObject) -> None:
    codec = PositionCodec(encoding)
    lines = split_lines(text)

    def position() -> tuple[int, types.Position]:
        line = data.draw(st.integers(0, len(lines) - 1))
        index = data.draw(st.integers(0, len(bare(lines[line]))))
        offset = sum(map(len, lines[:line])) + index
        return offset, types.Position(line, to_client(lines[line], index, codec))

    (start, first), (end, last) = sorted([position(), position()], key=lambda found: found[0])
    inserted = data.draw(TEXTS)
    document = Document("u", 1, text, codec)
    document.change([partial(first, last, inserted)], 2)
    assert document.text == text[:start] + inserted + text[end:]
    assert list(document.lines) == split_lines(document.text)


@given(st.sampled_from(ENCODINGS), TEXTS, TEXTS)
def test_the_smallest_edit_turns_one_text_into_the_other(encoding: str, before: str, after: str) -> None:
    codec = PositionCodec(encoding)
    document = Document("u", 1, before, codec)
    edits = minimal_edits(before, after, codec)
    document.change([types.TextDocumentContentChangePartial(range=e.range, text=e.new_text) for e in edits], 2)
    assert document.text == after
    assert len(edits) == (0 if before == after else 1)


def test_shared_lines_are_left_alone() -> None:
    (edit,) = minimal_edits("1\n2\n3\n4\n", "1\n2\nthree\n4\n", PositionCodec("utf-16"))
    assert edit.range == types.Range(types.Position(2, 0), types.Position(3, 0)) and edit.new_text == "three\n"
