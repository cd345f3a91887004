"""The README's install steps, to the letter: a new copy of the tree, a new home, each editor's own command line.

About five minutes on two busy cores. Not followed: lazy.nvim itself, which neither Debian nor npm nor PyPI has; its spec is
loaded, and done with it what lazy.nvim does (`lazy.lua`). `LAZY_NVIM=…` names a checkout of lazy.nvim: then it is followed too.
Nor a window on the package that was installed (`ui/installed.mjs` opens one). `code` is code-server's, with the same words.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from editors.neovim.instance import find_nvim

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("vscode")]


def shell_steps() -> list[str]:
    """Each block of shell below `## Install`, in order: the program, VS Code, Neovim."""
    [install] = re.findall(r"^## Install\n(.*?)^## ", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return re.findall(r"```sh\n(.*?)```", install, re.DOTALL)


def lazy_specs() -> list[str]:
    """Each plugin spec for lazy.nvim that a person can read, in order: the README, that of the client, its help."""
    client = ROOT / "editor-clients/neovim"
    texts = [(place / "README.md").read_text() for place in (ROOT, client)]
    found = [re.search(r"With \[lazy\.nvim\].*?```lua\n(.*?)```", text, re.DOTALL) for text in texts]
    found.append(re.search(r"With lazy\.nvim: >lua\n(.*?)\n<", (client / "doc/standfast.txt").read_text(), re.DOTALL))
    return [spec[1].replace("/path/to/standfast", "~/standfast") for spec in found if spec is not None]


def copy_of_the_tree(place: Path) -> Path:
    """What a clone would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


class Person:
    """Somebody with a new home. `does` runs their shell; all that they have is what a README may ask for."""

    def __init__(self, folder: Path, checkout: Path, programs: Path) -> None:
        self.checkout = checkout
        self.home = folder / "home"
        self.home.mkdir()
        own = ("STANDFAST_", "XDG_", "VIRTUAL_ENV", "PYTHON")
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self.home / ".local/bin"), str(programs), "/usr/local/bin:/usr/bin:/bin"]),
            "EXTENSIONS_GALLERY": "{}",
        }

    def does(self, script: str, cwd: Path | None = None, **more: str) -> str:
        """What it printed; a failed step is an error. `more`: of the environment."""
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=cwd or self.checkout, env=self._env | more, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Generator[Person]:
    """Has Python, Node, VS Code and Neovim, and has followed the first step."""
    folder = tmp_path_factory.mktemp("person")
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests/editors/vscode/install.py")], capture_output=True, text=True, check=True
    )
    tools = json.loads(ran.stdout)
    programs = folder / "programs"
    programs.mkdir()
    for name in ("node", "npm"):
        if tools["path"]:
            (programs / name).symlink_to(Path(tools["path"]) / name)
    if tools["code_server"]:
        (programs / "code").write_text(f'#!/bin/sh\nexec "{tools["node"]}" "{tools["code_server"]}" "$@"\n')
        (programs / "code").chmod(0o755)
    if (nvim := find_nvim()) is not None:
        (programs / "nvim").symlink_to(nvim)
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    person = Person(folder, copy_of_the_tree(folder / "standfast"), programs)
    assert person.does(shell_steps()[0]).startswith("standfast ")
    yield person
    with contextlib.suppress(AssertionError):  # no daemon was started
        person.does("standfast daemon stop --force")


def test_the_steps_for_vscode_install_the_extension(person: Person) -> None:
    for program in ("code", "npm"):
        if not (person.home.parent / "programs" / program).exists():
            pytest.skip(f"not run: {program} is missing")
    person.does(shell_steps()[1])
    assert person.does("code --list-extensions").split() == ["standfast.standfast"]


def test_the_steps_for_neovim_give_a_healthy_client(person: Person) -> None:
    if find_nvim() is None:
        pytest.skip("not run: Neovim is missing")
    person.does(shell_steps()[2])
    assert_healthy(person, "nvim")


def test_the_spec_for_lazy_is_one_and_gives_a_healthy_client(person: Person) -> None:
    if find_nvim() is None:
        pytest.skip("not run: Neovim is missing")
    (person.home / "standfast").symlink_to(person.checkout)
    specs = lazy_specs()
    assert len(specs) == 3
    lazy = os.environ.get("LAZY_NVIM")
    if lazy is None:
        print("not followed: lazy.nvim itself; its spec is loaded as it does (LAZY_NVIM=… names a checkout)")  # noqa: T201
    for spec in specs:
        apart = {f"XDG_{name}_HOME": str(person.home / "lazy") for name in ("CONFIG", "DATA")}  # from the other way
        said = assert_healthy(person, f"nvim -u {Path(__file__).parent / 'lazy.lua'}", SPEC=spec, **apart)
        assert "Failed" not in said


def assert_healthy(person: Person, nvim: str, **more: str) -> str:
    """In a project with a file open: the client runs, and `:checkhealth` has nothing to say against it."""
    project = person.home / "project"
    project.mkdir(exist_ok=True)
    person.does("git init -q && echo 'x = 1' > a.py", project)
    said = person.does(
        f"{nvim} --headless a.py"
        " -c \"lua vim.wait(30000, function() return vim.lsp.get_clients({ name = 'standfast' })[1] ~= nil end)\""
        ' -c "checkhealth standfast"'
        " -c \"lua io.stdout:write(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'))\""
        ' -c "qall!" 2>&1',
        project,
        **more,
    )
    assert "the daemon is running" in said
    assert "ERROR" not in said
    return said
