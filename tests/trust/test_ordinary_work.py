"""Ordinary work in the full sandbox: it works, or the result says what to ask for (issue G, shown 3)."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
import zipfile

import pytest

from process.place import Place
from standfast.tools.git_tool import GitTool
from standfast.tools.process_tool import ProcessTool
from standfast.tools.run_command import RunCommand

WHO = "-c user.name=Test -c user.email=test@example.org"


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def repository(place: Place) -> None:
    for words in ("init -q -b main", "config user.name Test", "config user.email test@example.org"):
        subprocess.run(["git", *words.split()], cwd=place.workspace, check=True, env=dict(place.commands.environ))


async def test_a_virtual_environment_takes_a_package(confined: Place) -> None:
    with zipfile.ZipFile(confined.workspace / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "WORD = 'installed'\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "tiny.py,,\n")
    pip = (
        f"{sys.executable} -m pip --python .venv/bin/python install --no-index --no-deps -q --disable-pip-version-check"
    )
    steps = (
        f"{sys.executable} -m venv --without-pip .venv",
        f"{pip} ./tiny-1-py3-none-any.whl",
        ".venv/bin/python -c 'import tiny; print(tiny.WORD)'",
    )
    outcome = await confined.call(RunCommand(confined.commands), command=" && ".join(steps))
    assert outcome.exit_code == 0, outcome.content
    assert "installed" in outcome.content


async def test_pytest_runs_with_temporary_files_sockets_and_subprocesses(confined: Place) -> None:
    (confined.workspace / "test_it.py").write_text(
        "import asyncio, multiprocessing, socket, subprocess, sys\n"
        "def test_files(tmp_path):\n    (tmp_path / 'a').write_text('x')\n"
        "def test_pair():\n    a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n"
        "def test_loopback():\n    s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n"
        "def test_process():\n    assert subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout\n"
        "def test_loop():\n    asyncio.run(asyncio.sleep(0))\n"
        "def test_lock():\n    multiprocessing.Lock()\n"
    )
    outcome = await confined.call(
        RunCommand(confined.commands), command=f"{sys.executable} -P -m pytest -q -p no:cacheprovider"
    )
    assert "6 passed" in outcome.content, outcome.content


async def test_git_commits_by_its_own_tool_and_a_command_says_to_use_it(confined: Place) -> None:
    repository(confined)
    (confined.workspace / "a.txt").write_text("x")
    shell, git = RunCommand(confined.commands), GitTool(confined.commands)
    refused = await confined.call(shell, command="git add a.txt && git commit -qm first")
    assert refused.status == "error"
    assert "by the `git` tool" in refused.content
    assert (await confined.call(git, action="add", paths=["a.txt"])).status == "ok"
    done = await confined.call(git, action="commit", message="first")
    assert done.status == "ok", done.content
    assert "first" in (await confined.call(git, action="log")).content
    status = await confined.call(shell, command="git status --porcelain && git log --oneline && git diff HEAD")
    assert status.exit_code == 0, status.content


async def test_a_linked_worktree_can_be_worked_in_and_a_git_file_that_lies_shows_nothing(confined: Place) -> None:
    main = confined.workspace.parent / "elsewhere"
    main.mkdir()
    shell = f"git init -q && git {WHO} commit -q --allow-empty -m one && git worktree add -q {confined.workspace}/tree"
    subprocess.run(shell, shell=True, cwd=main, check=True, env=dict(confined.commands.environ), capture_output=True)
    whole, confined.workspace = confined.workspace, confined.workspace / "tree"
    (confined.workspace / "b").write_text("x")
    git = GitTool(confined.commands)
    assert (await confined.call(git, action="add", paths=["b"])).status == "ok"
    status = await confined.call(RunCommand(confined.commands), command="git status --porcelain")
    assert "A  b" in status.content
    confined.workspace = whole / "liar"
    confined.workspace.mkdir()
    (confined.workspace / ".git").write_text(f"gitdir: {main}/.git\n")
    outcome = await confined.call(RunCommand(confined.commands), command=f"cat {main}/.git/config")
    assert "No such file" in outcome.content


async def test_a_compiler_makes_a_program_that_runs(confined: Place) -> None:
    needs("gcc")
    (confined.workspace / "a.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    outcome = await confined.call(RunCommand(confined.commands), command="gcc a.c -o a && ./a")
    assert outcome.content.startswith("built"), outcome.content


async def test_npm_test_runs(confined: Place) -> None:
    needs("npm")
    script = (
        "node -e \"require('child_process').execSync('true'); require('net').createServer()"
        ".listen(0, '127.0.0.1', function () { console.log('served'); this.close() })\""
    )
    (confined.workspace / "package.json").write_text(
        json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": script}})
    )
    outcome = await confined.call(RunCommand(confined.commands), command="npm test --silent")
    assert outcome.content.startswith("served"), outcome.content


async def test_a_development_server_is_reached_from_outside_with_the_network_only(confined: Place) -> None:
    serve = f"exec {sys.executable} -u -m http.server --bind 127.0.0.1 0"
    shell, process = RunCommand(confined.commands), ProcessTool(confined.commands)
    inside = (
        f'{sys.executable} -c "import http.server, threading, urllib.request as u; '
        "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler); "
        "threading.Thread(target=s.serve_forever, daemon=True).start(); "
        "print(u.urlopen('http://127.0.0.1:%d' % s.server_port).status)\""
    )
    assert "200" in (await confined.call(shell, command=inside)).content
    for network in (False, True):
        started = await confined.call(shell, command=serve, background=True, network=network)
        name = started.content.split("process_id ")[1].split(",")[0]
        listed = ""
        async with asyncio.timeout(30):
            while "listens on" not in listed:
                listed = (await confined.call(process, action="list")).content.split(name)[1]
        port = int(listed.split("127.0.0.1:")[1].split()[0].split(",")[0])
        if network:
            socket.create_connection(("127.0.0.1", port)).close()
        else:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
        await confined.call(process, action="stop", process_id=name)


async def test_without_the_network_a_command_says_what_to_ask_for_and_with_it_it_works(confined: Place) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        with server.accept()[0] as client:
            client.sendall(b"hello")

    greeter = threading.Thread(target=greet, daemon=True)
    greeter.start()
    command = f"{sys.executable} -c \"import socket; print(socket.create_connection(('127.0.0.1', {server.getsockname()[1]})).recv(5))\""
    shell = RunCommand(confined.commands)
    refused = await confined.call(shell, command=command)
    assert "network: true for the network" in refused.content
    assert "hello" in (await confined.call(shell, command=command, network=True)).content
    greeter.join(10)
    server.close()
