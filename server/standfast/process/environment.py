"""The environment of a command: an allow-list, so that no credential of the daemon reaches it (I12, ATK-32, ATK-37)."""

from __future__ import annotations

from collections.abc import Mapping

CERTIFICATES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
)  # fmt: skip
"""Where the authorities lie that the person's network is signed by; without them no package comes where that is their own."""
ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}
    | {"VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "JAVA_HOME", "GOPATH", "GOROOT"}
    | {"CARGO_HOME", "RUSTUP_HOME", "GEM_HOME", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MANPATH"}
    | set(CERTIFICATES)
)
"""Where things lie and how to speak. No keys, tokens, agent sockets or start-up files."""
PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
"""In capitals or small letters; handed on where no name and password stand in the address."""
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(environ: Mapping[str, str], operation_id: str) -> dict[str, str]:
    """What a command sees: allowed names of `environ`, a plain terminal, nothing that asks, and its operation id."""
    kept = {name: value for name, value in environ.items() if name in ALLOWED or name.startswith("LC_")}
    kept |= {name: value for name, value in environ.items() if name.upper() in PROXIES and "@" not in value}
    kept.setdefault("PATH", DEFAULT_PATH)
    return {
        **kept,
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "STANDFAST_OPERATION_ID": operation_id,
    }
