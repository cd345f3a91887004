"""For commands in a folder that is not trusted: git started by them runs nothing that the repository's settings name (issue G.1, ATK-21).

The settings go by the environment, which wins over the repository's own. Filters must be named one by one; their names are read from
the repository's settings as text. What a settings file includes from elsewhere is not followed: the sandbox is the second line.
"""

from __future__ import annotations

import re
from pathlib import Path

from standfast.shortage import let_through
from standfast.tools.git_places import git_directory

SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("commit.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("diff.external", ""),
)
_DRIVER = re.compile(r'^\s*\[\s*filter\s+"((?:[^"\\\n]|\\.)*)"\s*\]', re.MULTILINE | re.IGNORECASE)
BYTES_MAX = 1024 * 1024


def inert_settings(filters: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What switches filters off. Pure."""
    return tuple(
        (f"filter.{name}.{key}", value)
        for name in filters
        for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    )


def by_environment(settings: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Settings as the variables that git reads them from: a name there may hold an equals sign. Pure."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return found


def inert_environment(workspace: Path) -> dict[str, str]:
    """The variables for a command in an untrusted workspace. Blocking: reads the repository's settings."""
    git = git_directory(workspace)
    filters: tuple[str, ...] = ()
    if git is not None:
        try:
            with (git / "config").open("rb") as file:
                text = file.read(BYTES_MAX).decode("utf-8", "surrogateescape")
            filters = tuple(dict.fromkeys(re.sub(r"\\(.)", r"\1", name) for name in _DRIVER.findall(text)))
        except OSError as error:
            let_through(error)
            filters = ()
    return by_environment((*SETTINGS, *inert_settings(filters)))
