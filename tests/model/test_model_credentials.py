"""The key: where it lies, who can read it, and where it never appears (I12, ATK-37, ATK-38)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from standfast.errors import StandfastError
from standfast.model.credentials import Credentials

KEY = "sk-canary-0123456789"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "credentials.json"


def taken(path: Path, environ: dict[str, str]) -> Credentials:
    """As the daemon begins."""
    credentials = Credentials.take(path, environ)
    credentials.reload()
    return credentials


@pytest.mark.scenario("ATK-38")
def test_a_key_is_stored_for_its_owner_only_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        Credentials(path).set("anthropic", f"  {KEY}\n")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert taken(path, {}).key() == KEY
    assert [each.name for each in path.parent.iterdir()] == ["credentials.json"]


@pytest.mark.scenario("ATK-37")
def test_the_environments_key_is_taken_out_of_it(path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": KEY, "PATH": "/bin"}
    credentials = taken(path, environ)
    assert environ == {"PATH": "/bin"}
    assert (credentials.key(), credentials.source()) == (KEY, "environment")


def test_the_stored_key_wins_and_removing_it_removes_both(path: Path) -> None:
    credentials = taken(path, {"ANTHROPIC_API_KEY": "other"})
    credentials.set("anthropic", KEY)
    assert (credentials.key(), credentials.source()) == (KEY, "file")
    credentials.set("anthropic", None)
    assert (credentials.key(), credentials.source()) == (None, "none")
    assert taken(path, {}).key() is None


def test_a_key_that_another_process_stored_is_seen_after_reload(path: Path) -> None:
    credentials = taken(path, {})
    Credentials(path).set("anthropic", KEY)
    assert credentials.key() is None
    credentials.reload()
    assert credentials.key() == KEY


@pytest.mark.parametrize("bad", ["", "   ", "two words", "käse", "a\nb", "x" * 5000])
def test_what_cannot_be_a_key_is_refused_and_the_old_one_stays(path: Path, bad: str) -> None:
    credentials = Credentials(path)
    credentials.set("anthropic", KEY)
    with pytest.raises(StandfastError) as caught:
        credentials.set("anthropic", bad)
    assert caught.value.reason == "KeyInvalid"
    assert credentials.key() == KEY
    assert bad.strip() == "" or bad not in caught.value.message


def test_an_unknown_provider_is_refused(path: Path) -> None:
    with pytest.raises(StandfastError, match="no provider"):
        Credentials(path).set("other", KEY)


@pytest.mark.requirement("I12")
def test_neither_repr_nor_an_error_shows_the_key(path: Path) -> None:
    credentials = Credentials(path, from_environment="env-canary")
    credentials.set("anthropic", KEY)
    assert repr(credentials) == "Credentials(anthropic: file)"
    assert credentials.scrub(f"bad {KEY} and env-canary") == "bad [key] and [key]"
    path.write_text(f'{{"anthropic": "{KEY}"')
    with pytest.raises(StandfastError) as caught:
        credentials.reload()
    assert caught.value.reason == "CredentialsNotUsable"
    assert KEY not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_link_in_the_files_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"anthropic": {"key": "theirs"}}')
    path.parent.mkdir()
    path.symlink_to(outside)
    with pytest.raises(StandfastError) as caught:
        taken(path, {})
    assert caught.value.reason == "CredentialsNotUsable"


def test_a_pipe_in_the_files_place_does_not_hang(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StandfastError):
        taken(path, {})


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    Credentials(path).set("anthropic", KEY)
    path.chmod(0o644)
    assert taken(path, {}).key() == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_crash_left_half_written_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    (path.parent / "credentials.json.new").write_text("half")
    Credentials(path).set("anthropic", KEY)
    assert [each.name for each in path.parent.iterdir()] == ["credentials.json"]
