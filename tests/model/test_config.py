"""The user's settings: what is read, what is warned of, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.config import DEFAULT_BASE_URL, Settings, parse_settings, read_settings, take_settings
from standfast.errors import StandfastError


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none.toml", {}) == Settings()
    assert Settings().model.provider == "anthropic"
    assert Settings().daemon.idle_exit_s == 900
    assert Settings().daemon.grace_s == 60


def test_what_the_file_says_is_taken() -> None:
    settings = parse_settings(
        '[model]\nprovider = "scripted"\nmodel = "m"\nbase_url = "http://localhost:8080/v1/"\nmax_tokens = 10\n'
        "[daemon]\nidle_exit_s = 5\n",
        "config.toml",
    )
    assert settings.model.provider == "scripted"
    assert settings.model.model == "m"
    assert settings.model.base_url == "http://localhost:8080"
    assert settings.model.max_tokens == 10
    assert settings.daemon.idle_exit_s == 5
    assert (settings.base_url_from, settings.warnings) == ("config", ())


@pytest.mark.parametrize(
    ("text", "at_most", "minimum"),
    [
        ("", "full", "partial"),
        ('at_most = "partial"', "partial", "partial"),
        ('at_most = "none"', "none", "none"),
        ('level = "none"', "full", "none"),
        ('level = "full"', "full", "full"),
        ('at_most = "none"\nlevel = "partial"', "none", "partial"),
    ],
)
def test_commands_are_confined_unless_the_person_says_otherwise(text: str, at_most: str, minimum: str) -> None:
    sandbox = parse_settings(f"[sandbox]\n{text}\n", "config.toml").sandbox
    assert (sandbox.at_most, sandbox.minimum) == (at_most, minimum)


def test_an_unknown_key_is_a_warning_with_its_line() -> None:
    settings = parse_settings('[model]\nmodle = "x"\n\n[wrong]\na = 1\n', "config.toml")
    assert [warning.split(" is not")[0] for warning in settings.warnings] == [
        "config.toml, line 2: model.modle",
        "config.toml, line 4: wrong",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[model]\nmodel = \n", 2),
        ('[model]\n\nprovider = "other"\n', 3),
        ('[model]\nmodel = "m"\nmax_tokens = 0\n', 3),
        ("[daemon]\nidle_exit_s = -1\n", 2),
        ('[model]\nbase_url = "ftp://x"\n', 2),
        ('[model]\nbase_url = "https://me:secret@x"\n', 2),
        ("daemon.grace_s = true\n", 1),
        ("model = 1\n", 1),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_with_file_and_line(text: str, line: int) -> None:
    with pytest.raises(StandfastError) as caught:
        parse_settings(text, "config.toml")
    assert caught.value.reason == "ConfigInvalid"
    assert caught.value.data == {"path": "config.toml", "line": line}
    assert caught.value.message.startswith(f"config.toml, line {line}: ")
    assert "safe" in caught.value.message
    assert "secret" not in caught.value.message


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"[model]\n# \xff\n")
    with pytest.raises(StandfastError, match="line 2: this is not UTF-8"):
        read_settings(path, {})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StandfastError) as caught:
        read_settings(tmp_path, {})
    assert caught.value.reason == "ConfigInvalid"


def test_the_environments_address_is_a_fallback_and_then_gone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    environ = {"ANTHROPIC_BASE_URL": "https://gateway.example/"}
    settings = take_settings(path, environ)
    assert (settings.model.base_url, settings.base_url_from) == ("https://gateway.example", "environment")
    assert environ == {}
    path.write_text('[model]\nbase_url = "https://mine.example"\n')
    settings = read_settings(path, {"ANTHROPIC_BASE_URL": "https://gateway.example/"})
    assert (settings.model.base_url, settings.base_url_from) == ("https://mine.example", "config")
    assert parse_settings("", "config.toml").model.base_url == DEFAULT_BASE_URL


def test_a_bad_address_in_the_environment_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(StandfastError, match="the environment's ANTHROPIC_BASE_URL: must be"):
        read_settings(tmp_path / "none", {"ANTHROPIC_BASE_URL": "nonsense"})


def test_an_address_in_the_clear_beyond_this_machine_is_warned_of() -> None:
    assert "clear" in parse_settings('[model]\nbase_url = "http://far.example"\n', "c").warnings[0]
    assert parse_settings('[model]\nbase_url = "http://127.0.0.1:1"\n', "c").warnings == ()


@given(st.text(st.sampled_from('[]=."\n model daemonbase_url1#{}'), max_size=60))
def test_any_text_gives_settings_or_one_kind_of_error(text: str) -> None:
    try:
        parse_settings(text, "config.toml")
    except StandfastError as error:
        assert error.reason == "ConfigInvalid"
