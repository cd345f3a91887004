"""Interpreters are found inside the sandbox wherever they lie, homes and workspaces by whatever name they are called (issue G, shown 3)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fake_api import FakeApi, reply, tool
from process.place import Place
from standfast.process.environment import command_environment
from standfast.process.sandbox import Level
from standfast.tools.run_command import RunCommand
from support import configure, open_editor, start_daemon
from trust.conftest import confined_place

PASSWORD = "person:word@"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


async def said(place: Place, command: str) -> str:
    outcome = await place.call(RunCommand(place.commands), command=command)
    assert outcome.exit_code == 0, outcome.content
    return outcome.content.splitlines()[0]


async def test_a_program_that_is_a_link_into_an_installation_elsewhere_runs(tmp_path: Path, level: Level) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/my-python").symlink_to(os.path.realpath(sys.executable))
    place = confined_place(tmp_path, level, path=f"{tmp_path}/bin:{SYSTEM_PATH}", read=())
    assert await said(place, "my-python -c 'import json; print(json.dumps(1))'") == "1"


async def test_a_virtual_environment_of_the_workspace_finds_its_python_which_no_path_names(
    tmp_path: Path, level: Level
) -> None:
    place = confined_place(tmp_path, level, path=SYSTEM_PATH, read=())
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place.workspace / ".venv"], check=True)
    assert await said(place, ".venv/bin/python -c 'import json; print(json.dumps(1))'") == "1"


async def test_a_virtual_environment_that_names_something_else_shows_nothing(tmp_path: Path, level: Level) -> None:
    secrets = tmp_path / "other"
    for name in ("bin/id", "lib/python3/secret", "lib/key"):
        (secrets / name).parent.mkdir(parents=True, exist_ok=True)
        (secrets / name).write_text("canary")
    place = confined_place(tmp_path, level)
    (place.workspace / ".venv").mkdir()
    (place.workspace / ".venv/pyvenv.cfg").write_text(f"home = {secrets}/bin\n")
    outcome = await place.call(RunCommand(place.commands), command=f"cat {secrets}/lib/key {secrets}/bin/id")
    assert outcome.exit_code != 0
    assert "canary" not in outcome.content


async def test_no_project_on_the_path_is_shown_whole(tmp_path: Path, level: Level) -> None:
    """A directory of the PATH is shown; what lies beside it only where that is an installation."""
    project = tmp_path / "rails"
    for name in ("bin/tool", "lib/own.rb", "config/key"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("canary")
    place = confined_place(tmp_path, level, path=f"{project}/bin:{SYSTEM_PATH}")
    assert await said(place, f"cat {project}/bin/tool") == "canary"
    outcome = await place.call(RunCommand(place.commands), command=f"cat {project}/config/key {project}/lib/own.rb")
    assert "canary" not in outcome.content


async def test_a_home_and_a_workspace_that_are_links_work_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real/own/tools").mkdir(parents=True)
    (tmp_path / "home").symlink_to("real/own")
    tool = tmp_path / "real/own/tools/hello"
    tool.write_text("#!/bin/sh\necho hello\n")
    tool.chmod(0o755)
    place = confined_place(tmp_path, "full", path=f"{tmp_path}/home/tools:{SYSTEM_PATH}")
    real, place.workspace = place.workspace, tmp_path / "called"
    place.workspace.symlink_to(real)
    assert await said(place, "hello") == "hello"
    assert await said(place, "cd ~ && pwd -P") == f"{tmp_path}/real/own"
    assert await said(place, f"touch {tmp_path}/called/made; ls {real}") == "made"


async def test_a_package_cache_is_shown_without_the_network_and_private_with_it(tmp_path: Path) -> None:
    """With the network a package manager writes there: it gets a place of its own, and what the person has stays as it is."""
    registry = tmp_path / "home/.cargo/registry"
    registry.mkdir(parents=True)
    (registry / "crate").write_text("kept")
    place = confined_place(tmp_path, "full")
    assert await said(place, "cat ~/.cargo/registry/crate") == "kept"
    fetch = "mkdir -p ~/.cargo/registry && echo other > ~/.cargo/registry/crate && echo fetched"
    outcome = await place.call(RunCommand(place.commands), command=fetch, network=True)
    assert outcome.content.startswith("fetched"), outcome.content
    assert (registry / "crate").read_text() == "kept"


def test_the_way_to_the_network_is_handed_on_but_no_password_on_it() -> None:
    environ = {
        "https_proxy": f"http://{PASSWORD}proxy.example:8080",
        "HTTP_PROXY": "http://proxy.example:8080",
        "no_proxy": "localhost",
        "SSL_CERT_FILE": "/etc/own.pem",
        "PIP_CERT": "/etc/own.pem",
        "PIP_INDEX_URL": f"https://{PASSWORD}index.example/simple",
    }
    kept = command_environment(environ, "op_1")
    assert {name: value for name, value in kept.items() if name in environ} == {
        name: environ[name] for name in ("HTTP_PROXY", "no_proxy", "SSL_CERT_FILE", "PIP_CERT")
    }


async def test_the_authorities_that_the_person_names_can_be_read_inside(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    """A network that is signed by its own authority: its certificate lies in the home."""
    authority = home / "authority.pem"
    authority.write_text("certificate\n")
    (home / "beside.pem").write_text("other\n")
    configure(home, model={"base_url": fake_api.url})
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key, "SSL_CERT_FILE": str(authority)})
    try:
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="auto")
            words = "cat $SSL_CERT_FILE; cat $(dirname $SSL_CERT_FILE)/beside.pem"
            fake_api.push(reply("", tools=[tool("run_command", command=words)]), reply("Done."))
            await editor.run_end(await editor.start(session_id, "go"))
            [told] = [event["content"] for event in editor.events(session_id, "tool_result")]
            assert told.startswith("certificate\n")
            assert (await editor.request("standfast/daemon/status", {}))["sandbox"] == "none" or "other" not in told
    finally:
        running.end()
