"""URIs as keys (d23). Pure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.editor.uris import key_of, path_of, session_document, session_of_document, uri_of, within


@pytest.mark.scenario("d23")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///w/my%20dir/a%231%C3%A4.py", "file:///w/my%20dir/a%231%c3%a4.py"),
        ("file:///w/my%20dir/a", "file:///w/my dir/a"),
        ("file:///c%3A/x", "file:///C:/x"),
        ("file:///c:/x", "file:///c%3a/x"),
        ("file:///w/./a/../b", "file:///w/b"),
        ("file:///w//b", "file:///w/b"),
        ("FILE:///w/b", "file://localhost/w/b"),
    ],
)
def test_two_spellings_of_a_file_are_one_document(one: str, other: str) -> None:
    assert key_of(one) == key_of(other)


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "http://x/a", "file://server/share/a", "standfast:/session/s"])
def test_what_is_no_local_file_is_its_own_key(uri: str) -> None:
    assert path_of(uri) is None and key_of(uri) == uri


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    path = f"/w/{name}"
    if name not in (".", ".."):
        assert path_of(uri_of(path)) == path
        assert path_of(Path(path).as_uri()) == path


def test_a_folder_holds_itself_and_what_lies_in_it_only() -> None:
    assert within("/a", "/a") and within("/a/b", "/a") and within("/a", "/")
    assert not within("/ab", "/a") and not within("/", "/a")


def test_a_transcript_document_names_its_session() -> None:
    assert session_of_document(session_document("ses_1")) == "ses_1"
    assert session_of_document("file:///session/ses_1") is None
