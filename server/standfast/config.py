"""The user's own settings: `config.toml`, read once by the daemon (design.md "Command line, places and tools").

Nothing in a project sets any of this. `parse_settings` is pure; `read_settings` and `take_settings` touch the disk and the
environment. An unknown key is a warning (a later version's file still works); a value that cannot be meant is `ConfigInvalid`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from standfast.errors import StandfastError

DEFAULT_MODEL = "claude-sonnet-5-5"
DEFAULT_BASE_URL = "https://api.anthropic.com"
BASE_URL_VARIABLE = "ANTHROPIC_BASE_URL"

Seconds = Annotated[float, Field(gt=0, le=86_400)]


def server_address(value: str) -> str:
    """A base URL in the form that the model's client wants: no trailing slash, no `/v1`. Raises ValueError."""
    parts = urlsplit(value.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// address")
    if parts.username or parts.password:
        raise ValueError("must not hold a user name or password; use `standfast login` for the key")
    if parts.query or parts.fragment:
        raise ValueError("must not hold a ? or # part")
    return value.strip().rstrip("/").removesuffix("/v1").rstrip("/")


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ModelSettings(Section):
    """`[model]`: which model answers, and where."""

    provider: Literal["anthropic", "scripted"] = "anthropic"
    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    base_url: Annotated[str, AfterValidator(server_address)] = DEFAULT_BASE_URL
    """Any server that speaks the Messages API. The file wins over ANTHROPIC_BASE_URL, which wins over the default."""
    max_tokens: int = Field(default=16_000, ge=1)
    """Tokens of one reply."""
    window: int = Field(default=200_000, ge=8_000)
    """Tokens that the model takes in one request, reply included; near its end the history is summarised."""
    thinking: Literal["default", "adaptive", "off"] = "default"
    """`default` says nothing to the server: the model does as it is used to."""
    stall_s: Seconds = 120
    """A stream that is silent for so long has stalled."""
    connect_s: Seconds = 15
    proxy: str | None = None
    """An HTTP proxy; the environment's proxy variables are not read."""


class DaemonSettings(Section):
    """`[daemon]`: how long it stays."""

    idle_exit_s: Seconds = 900
    grace_s: Seconds = 60
    """How long a command lives on after its daemon died, for the next one to adopt it."""
    backup_every_s: Seconds = 86_400
    """A copy of the store is made when the newest is older."""


class SandboxSettings(Section):
    """`[sandbox]`: how commands are confined. Paths are absolute or beneath the home."""

    level: Literal["none", "partial", "full"] | None = None
    """The least that is good enough (`minimum` where it is not said): where this machine cannot do it, every command is asked, in all
    modes."""
    at_most: Literal["none", "partial", "full"] = "full"
    """The strongest to use. In `full` a shell cannot commit (the `git` tool can), nobody reaches a server without the network, and
    Unix sockets and debuggers do not work: a call can ask to run outside, or the person lowers this."""
    network: bool = False
    """Commands have the network without asking for it."""
    read: list[str] = []
    """What they may read besides the system, the workspace and the usual tool chains."""
    write: list[str] = []
    """What they may change besides the workspace, e.g. a package manager's cache."""
    memory_mb: int = Field(default=0, ge=0, le=16 * 1024 * 1024)
    """MiB that each process in the sandbox may have for its data; 0: no limit, since some compilers and tests need all there is."""

    @property
    def minimum(self) -> Literal["none", "partial", "full"]:
        """`partial` unless the person says otherwise, since `auto` and what was allowed for a session rest on the sandbox; who
        switches it off has said that none is enough."""
        return self.level or ("none" if self.at_most == "none" else "partial")


class RunSettings(Section):
    """`[run]`: how a run meets a model that does not answer."""

    retry_base_ms: int = Field(default=500, ge=1, le=60_000)
    """The first pause before another try; it doubles from there."""


class SessionSettings(Section):
    """`[session]`: how sessions go on."""

    folder: Literal["ask", "original", "current"] = "ask"
    """Which folder a session goes on in, where the editor's is another than its own: asked (its own until answered), always its
    own, or always the editor's (it is rebound when a message is sent from there)."""


class Settings(Section):
    """All settings, and what was odd about them (`warnings`, sentences for `status` and `doctor`)."""

    model: ModelSettings = ModelSettings()
    daemon: DaemonSettings = DaemonSettings()
    run: RunSettings = RunSettings()
    session: SessionSettings = SessionSettings()
    sandbox: SandboxSettings = SandboxSettings()
    warnings: tuple[str, ...] = ()
    base_url_from: Literal["default", "config", "environment"] = "default"
    """Who chose `model.base_url`; shown by `status`."""


def parse_settings(text: str, name: str, base_url_fallback: str | None = None) -> Settings:
    """The settings in `text`. `name` is the file as people are told it. Raises StandfastError `ConfigInvalid`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _invalid(name, _line_in(str(error)), str(error)) from None
    warnings = [
        f"{name}, line {_line_of(text, path) or '?'}: {'.'.join(path)} is not a setting of this version; it was ignored."
        for path in _unknown(table, Settings)
    ]
    chosen: Literal["default", "config", "environment"] = "default"
    section = table.setdefault("model", {})
    if isinstance(section, dict):
        if "base_url" in section:
            chosen = "config"
        elif base_url_fallback:
            section["base_url"], chosen = base_url_fallback, "environment"
    known = {key: table[key] for key in ("model", "daemon", "run", "session", "sandbox") if key in table}
    try:
        settings = Settings.model_validate(known)
    except ValidationError as error:
        raise _explain(error, text, name, chosen) from None
    if _in_clear(settings.model.base_url):
        warnings.append(f"{settings.model.base_url} is not encrypted: the key and your code travel in the clear.")
    return settings.model_copy(update={"warnings": tuple(warnings), "base_url_from": chosen})


def read_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """The settings in the file at `path`; no file means the defaults. Raises StandfastError `ConfigInvalid`."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _invalid(str(path), line, "this is not UTF-8 text") from None
    except OSError as error:
        raise _invalid(str(path), None, f"the file cannot be read ({error.strerror})") from None
    return parse_settings(text, str(path), environ.get(BASE_URL_VARIABLE))


def take_settings(path: Path, environ: MutableMapping[str, str]) -> Settings:
    """`read_settings` for the daemon: what it took from its environment is gone from there, so no command inherits it."""
    settings = read_settings(path, environ)
    environ.pop(BASE_URL_VARIABLE, None)
    return settings


def _unknown(
    table: Mapping[str, Any], shape: type[BaseModel], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The paths of keys that no section has."""
    for key, value in table.items():
        field = shape.model_fields.get(key)
        if field is None or key in ("warnings", "base_url_from"):
            yield (*above, key)
        elif isinstance(value, dict) and isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _unknown(cast("dict[str, Any]", value), field.annotation, (*above, key))


def _explain(error: ValidationError, text: str, name: str, chosen: str) -> StandfastError:
    """The first thing that is wrong, in words, with its line."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = tuple(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if path == ("model", "base_url") and chosen == "environment":
        return _invalid(f"the environment's {BASE_URL_VARIABLE}", None, said)
    return _invalid(name, _line_of(text, path), f"{'.'.join(path)}: {said}")


def _invalid(name: str, line: int | None, said: str) -> StandfastError:
    where = name if line is None else f"{name}, line {line}"
    return StandfastError(
        "ConfigInvalid",
        f"{where}: {said}. Nothing was started or changed, your sessions are safe. "
        "Correct it, or move it away to go on with the defaults.",
        path=name,
        line=line,
    )


def _line_in(message: str) -> int | None:
    """The line that the TOML reader names."""
    found = re.search(r"line (\d+)", message)
    return int(found[1]) if found else None


def _line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line (from 1) on which a setting stands, where it is written the usual way; else its section's."""
    section: tuple[str, ...] = ()
    fallback: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([\w.\-]+)\s*\]", line)
        if header:
            section = tuple(header[1].split("."))
            if section == path:
                return number
            if section == path[:-1]:
                fallback = number
            continue
        key = re.match(r"\s*\"?([\w.\-]+)\"?\s*=", line)
        if key and (*section, *key[1].split(".")) == path:
            return number
    return fallback


def _in_clear(base_url: str) -> bool:
    parts = urlsplit(base_url)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")
