"""The environment of a command: an allow-list, so that no credential of the daemon reaches it (I12, ATK-32, ATK-37)."""

from __future__ import annotations

from collections.abc import Mapping

ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}
    | {"VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "JAVA_HOME", "GOPATH", "GOROOT"}
    | {"CARGO_HOME", "RUSTUP_HOME", "GEM_HOME", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MANPATH"}
)
"""Where things lie and how to speak. No keys, tokens, agent sockets, proxies (they may hold passwords) or start-up files."""
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(environ: Mapping[str, str], operation_id: str) -> dict[str, str]:
    """What a command sees: allowed names of `environ`, a plain terminal, nothing that asks, and its operation id."""
    kept = {name: value for name, value in environ.items() if name in ALLOWED or name.startswith("LC_")}
    kept.setdefault("PATH", DEFAULT_PATH)
    return {
        **kept,
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "STANDFAST_OPERATION_ID": operation_id,
    }
