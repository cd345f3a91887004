"""VS Code, for real: the extension's pure parts, then the stories in code-server (which is VS Code) with a real browser.

Where Chromium or Node's packages cannot be had, the tests that need them are skipped with that reason, in words.
`node tests/editors/vscode/run.mjs` runs the same stories without pytest; `--pictures` renews the README's pictures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "vscode"
EXTENSION = HERE.parents[2] / "editor-clients" / "vscode"
STORIES = {
    "host.mjs": ("d03", "d07"),
    "ui/story.mjs": ("ATK-46",),
    "ui/windows.mjs": ("d10", "d12", "ATK-42"),
    "ui/prompts.mjs": (),
    "ui/long.mjs": (),
    "ui/installed.mjs": (),
}
"""Suite → the cases it holds (tests/editors/vscode)."""

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("vscode")]


@pytest.fixture(scope="session")
def tools() -> dict[str, Any]:
    """Where Node, code-server, the browser and the packages are."""
    ran = subprocess.run([sys.executable, str(HERE / "install.py")], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def node(tools: dict[str, Any], words: Sequence[str], cwd: Path) -> None:
    """Run Node and show what it said if it failed."""
    env = {
        **os.environ,
        "PATH": f"{tools['path']}{os.pathsep}{os.environ.get('PATH', '')}",
        "STANDFAST_PROGRAM": str(Path(sys.executable).parent / "standfast"),
        "CODE_SERVER": tools["code_server"],
        "CHROMIUM": tools["chromium"],
        "TEST_MODULES": tools["modules"],
    }
    ran = subprocess.run([tools["node"], *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


def need_packages(tools: dict[str, Any]) -> None:
    if not tools["modules"]:
        pytest.skip(f"not run: the VS Code extension's own tests. Missing: {'; '.join(tools['missing'])}")


@pytest.mark.scenario("ATK-43")
@pytest.mark.scenario("ATK-45")
@pytest.mark.scenario("d12")
def test_the_pure_parts_of_the_extension_hold(tools: dict[str, Any]) -> None:
    need_packages(tools)
    node(tools, ["esbuild.mjs", "test"], EXTENSION)
    node(tools, ["--test", "dist/test/*.test.mjs"], EXTENSION)


def test_the_extension_is_typed_and_in_style_and_makes_a_package(tools: dict[str, Any]) -> None:
    need_packages(tools)
    node(tools, [*tools["npm"][1:], "run", "--silent", "package"], EXTENSION)


@pytest.mark.parametrize(
    "suite",
    [pytest.param(suite, marks=[pytest.mark.scenario(case) for case in cases]) for suite, cases in STORIES.items()],
)
def test_vscode_plays_the_story(suite: str, tools: dict[str, Any]) -> None:
    if tools["missing"]:
        pytest.skip(f"not run: {suite} in a real VS Code. Missing: {'; '.join(tools['missing'])}")
    node(tools, ["--test", "--test-concurrency=1", "--test-reporter=spec", suite], HERE)
