"""Names that need care: `.git` (refused), files that start programs (asked for), secrets (asked for before reading). Pure.

A name is judged as a careless file system would see it: case folded, NFKC, invisible characters and trailing dots and
spaces removed (ATK-15, ATK-18, ATK-19, ATK-22; POLICY 8).
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import fnmatchcase

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Default-ignorable characters that are not of category Cf; variation selectors are tested by range."""

_EDITOR = "can change what the editor runs"
_AGENT = "can change what an agent may do or starts"
_SHELL = "runs when a shell or an editor enters the folder"
_HOOK = "runs at a git operation"
_CI = "runs on the build servers"

STARTS_PROGRAMS: tuple[tuple[str, str], ...] = (
    (".vscode/settings.json", _EDITOR),
    (".vscode/tasks.json", _EDITOR),
    (".vscode/launch.json", _EDITOR),
    (".vscode/extensions.json", _EDITOR),
    (".vscode/mcp.json", _AGENT),
    ("*.code-workspace", _EDITOR),
    (".idea/*", _EDITOR),
    (".zed/*", _EDITOR),
    (".fleet/*", _EDITOR),
    (".devcontainer/*", _EDITOR),
    (".devcontainer.json", _EDITOR),
    (".dir-locals.el", _EDITOR),
    (".nvim.lua", _EDITOR),
    (".nvimrc", _EDITOR),
    (".exrc", _EDITOR),
    (".vimrc", _EDITOR),
    (".lvimrc", _EDITOR),
    (".mcp.json", _AGENT),
    (".claude/*", _AGENT),
    (".cursor/*", _AGENT),
    (".codex/*", _AGENT),
    (".gemini/*", _AGENT),
    (".standfast/*", _AGENT),
    (".cursorrules", _AGENT),
    (".envrc", _SHELL),
    (".mise.toml", _SHELL),
    ("mise.toml", _SHELL),
    (".bashrc", _SHELL),
    (".bash_profile", _SHELL),
    (".bash_login", _SHELL),
    (".bash_logout", _SHELL),
    (".profile", _SHELL),
    (".zshrc", _SHELL),
    (".zshenv", _SHELL),
    (".zprofile", _SHELL),
    (".zlogin", _SHELL),
    (".ssh/*", _SHELL),
    (".config/fish/*", _SHELL),
    (".config/nvim/*", _EDITOR),
    (".husky/*", _HOOK),
    (".githooks/*", _HOOK),
    (".gitattributes", _HOOK),
    (".gitmodules", _HOOK),
    (".gitconfig", _HOOK),
    (".pre-commit-config.yaml", _HOOK),
    ("lefthook.yml", _HOOK),
    (".lefthook.yml", _HOOK),
    (".github/workflows/*", _CI),
    (".github/actions/*", _CI),
    (".gitlab-ci.yml", _CI),
    (".circleci/*", _CI),
    (".travis.yml", _CI),
    (".drone.yml", _CI),
    (".forgejo/workflows/*", _CI),
    (".gitea/workflows/*", _CI),
    (".ci/*", _CI),
    ("azure-pipelines.yml", _CI),
    ("jenkinsfile", _CI),
    (".npmrc", "can change what a package manager runs"),
    (".yarnrc.yml", "can change what a package manager runs"),
    ("pip.conf", "can change what a package manager runs"),
    ("sitecustomize.py", "runs whenever Python starts"),
    ("usercustomize.py", "runs whenever Python starts"),
    ("*.pth", "runs whenever Python starts"),
    ("*.pyc", "is code that nobody can read"),
)
"""Patterns over the end of a path, and what such a file does."""

EDITOR_SETTINGS = (".vscode/settings.json", ".vscode/tasks.json")
"""Refused outright where nobody can be asked (POLICY 8)."""

SECRETS = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.keystore",
    "*.jks",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh/*",
    ".aws/*",
    ".gnupg/*",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".pypirc",
    ".npmrc",
    ".htpasswd",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.toml",
    "service-account*.json",
)
NOT_SECRET = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")


def plain_name(name: str) -> str:
    """A name as a careless file system sees it."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(char for char in folded if not _is_invisible(char))
    return visible.rstrip(". ")


def plain_path(path: str) -> str:
    return "/".join(plain_name(part) for part in path.split("/"))


def is_git(path: str) -> bool:
    """Whether any part of a relative path is git's own directory (or its 8.3 name, or a stream of it)."""
    return any(re.fullmatch(r"(\.git|git~\d)(:.*)?", part) for part in plain_path(path).split("/"))


def is_editor_settings(path: str) -> bool:
    return _matches(plain_path(path), EDITOR_SETTINGS)


def starts_programs(path: str) -> str | None:
    """What a file that starts programs does, as the end of a sentence; None for any other file."""
    plain = plain_path(path)
    return next((what for pattern, what in STARTS_PROGRAMS if _matches(plain, (pattern,))), None)


def is_secret(path: str) -> bool:
    """Whether reading the file may give away a key or a password."""
    plain = plain_path(path)
    return _matches(plain, SECRETS) and not _matches(plain, NOT_SECRET)


def _is_invisible(char: str) -> bool:
    if unicodedata.category(char) == "Cf" or char in INVISIBLE:
        return True
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0000" <= char <= "\U000e0fff" or "\u180b" <= char <= "\u180f"


def _matches(plain: str, patterns: tuple[str, ...]) -> bool:
    """A pattern with a directory matches that directory at any depth, one without matches the last name."""
    name = plain.rpartition("/")[2]
    for pattern in patterns:
        if "/" not in pattern:
            if fnmatchcase(name, pattern):
                return True
        elif fnmatchcase(plain, pattern) or fnmatchcase(plain, f"*/{pattern}"):
            return True
    return False
