"""The tree is as tidy as it says: formatted, typed, generated files fresh, nothing of this machine in it (style_guide.md 28)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
BINARY = frozenset({".png", ".ico", ".gif", ".vsix", ".db", ".zip"})


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)


def tracked() -> list[Path]:
    return [ROOT / name for name in run("git", "ls-files", "-z").stdout.split("\0") if name]


def modules() -> list[Path]:
    return sorted((ROOT / "server" / "standfast").rglob("*.py"))


@pytest.mark.parametrize("words", [("check", "."), ("format", "--check", ".")], ids=["check", "format"])
def test_ruff_has_nothing_to_say(words: tuple[str, ...]) -> None:
    ran = run(str(BIN / "ruff"), *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.timeout(180)
def test_pyright_strict_has_nothing_to_say() -> None:
    ran = run(str(BIN / "pyright"))
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_generated_files_are_fresh() -> None:
    ran = run(sys.executable, "protocol-spec/generate.py", "--check")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_module_is_longer_than_one_reads_in_a_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): count for path in modules() if (count := len(path.read_text().splitlines())) > 450
    }
    assert long == {}


def test_every_module_says_first_what_it_owns() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.read_text().strip() and not path.read_text().startswith('"""')
    ]
    assert silent == []


def test_no_module_is_named_for_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert [path.name for path in modules() if path.stem in vague or path.parent.name in vague] == []


def test_every_folder_is_on_the_map() -> None:
    told = (ROOT / "server" / "ARCHITECTURE.md").read_text()
    folders = [path.name for path in (ROOT / "server" / "standfast").iterdir() if (path / "__init__.py").exists()]
    singles = [path.stem for path in (ROOT / "server" / "standfast").glob("[a-z]*.py")]
    assert [name for name in folders if f"`{name}/`" not in told] == []
    assert [name for name in singles if f"`{name}`" not in told] == []


def test_every_command_is_in_the_help_and_the_readme_names_both_scripts() -> None:
    told = run(str(BIN / "standfast"), "--help").stdout
    for name in (
        "lsp",
        "daemon",
        "sessions",
        "show",
        "run",
        "events",
        "doctor",
        "export",
        "import",
        "login",
        "demo",
        "apply-patch",
    ):
        assert name in told
    readme = (ROOT / "README.md").read_text()
    for script in ("demo", "test", "run", "setup"):
        assert os.access(ROOT / ".ci" / script, os.X_OK)
    assert ".ci/demo" in readme
    assert ".ci/test" in readme


def test_nothing_of_the_machine_that_it_was_made_on_is_in_the_tree() -> None:
    """Paths of the maker's machine, names of hosts that packages came from."""
    traces = re.compile(
        "|".join(
            [
                r"(?<!\w)/" + "work/",
                r"(?<!\w)/" + "root/",
                r"/home/(?!user\b|you\b|me\b)[a-z]+/",
                "index" + "-url",
                r"\.inter" + r"nal\b(?!\()",
                "art" + "ifactory",
                "proxy" + r"\.golang",
            ]
        )
    )
    found = {
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in tracked()
        if path.suffix not in BINARY and path.is_file()
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1)
        if traces.search(line)
    }
    assert found == set()


def test_no_file_is_tracked_that_should_not_be() -> None:
    unwanted = re.compile(r"(^|/)(__pycache__|\.venv|node_modules|\.env)(/|$)|\.(pyc|sqlite|db|log)$")
    assert [str(path) for path in tracked() if unwanted.search(str(path.relative_to(ROOT)))] == []
