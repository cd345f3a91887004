"""Build a world worth attacking, run the probes in it under one level through the real supervisor, say what was reached.

python probe_runner.py BASE LEVEL PROBES.PY  →  {"level", "why", "found": {probe: …}, "traces": […]}

Standard library and `standfast.process` only, so that it also runs as a user who cannot read the tests' own environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from standfast.process import sandbox
from standfast.process.environment import command_environment
from standfast.process.launch import Commands
from standfast.process.record import OUTPUT, Spec
from standfast.tools.protected_places import protected

CANARY = "canary-3f9c1d"
VICTIM = "import sys,time; sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()"


def build(base: Path) -> dict[str, Any]:
    """The files: a workspace with repositories and settings, a home with secrets, another project, a state directory."""
    workspace, home, outside, state = (base / name for name in ("workspace", "home", "outside", "state"))
    for folder in (
        workspace,
        home / ".ssh",
        home / ".config/JetBrains",
        home / ".claude",
        outside,
        state,
        workspace / ".vscode",
    ):
        folder.mkdir(parents=True)
    for repository in (workspace, workspace / "vendor/sub"):
        repository.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(repository)], check=True, env={**os.environ, "HOME": str(home)})
        (repository / ".git/hooks").mkdir(exist_ok=True)
    (workspace / ".vscode/settings.json").write_text('{"a": 1}')
    (workspace / ".envrc").write_text("true\n")
    for file in (
        home / ".ssh/id_ed25519",
        home / "diary.txt",
        home / ".bashrc",
        outside / "secret",
        state / "standfast.db",
    ):
        file.write_text(f"# {CANARY}\n")
    handle, temporary = tempfile.mkstemp(prefix="standfast-probe-")
    os.write(handle, CANARY.encode())
    os.close(handle)
    named = {"workspace": workspace, "home": home, "outside": outside, "state": state}
    return {**{name: str(path) for name, path in named.items()}, "temporary": temporary, "canary": CANARY}


@contextlib.contextmanager
def neighbours(world: dict[str, Any]) -> Iterator[None]:
    """What lives outside: a process with a secret, a TCP and a UDP server, a Unix socket."""
    unix = socket.socket(socket.AF_UNIX)
    world["socket"] = str(Path(world["state"], "d.sock"))
    unix.bind(world["socket"])
    unix.listen()
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    world["tcp"], world["udp"] = tcp.getsockname()[1], udp.getsockname()[1]

    def greet() -> None:
        with contextlib.suppress(OSError):
            while True:
                tcp.accept()[0].sendall(b"hello")

    def answer() -> None:
        with contextlib.suppress(OSError):
            while True:
                udp.sendto(b"here!", udp.recvfrom(64)[1])

    for serve in (greet, answer):
        threading.Thread(target=serve, daemon=True).start()
    victim = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", VICTIM, "victim"],
        env={"SECRET": CANARY},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert victim.stdout is not None
    victim.stdout.readline()
    world["victim"] = victim.pid
    try:
        yield
    finally:
        victim.communicate()
        for sock in (unix, tcp, udp):
            sock.close()
        os.unlink(world["temporary"])


async def run(base: Path, level: Any, probes: Path) -> dict[str, Any]:
    world = build(base)
    workspace = Path(world["workspace"])
    shutil.copyfile(probes, workspace / "probes.py")
    environ = {"PATH": os.environ["PATH"], "HOME": world["home"], "ANTHROPIC_API_KEY": CANARY, "GITHUB_TOKEN": CANARY}
    exposure = sandbox.expose(world["home"], own=[world["state"]], path=environ["PATH"], read=[sys.base_prefix])
    found = sandbox.detect(exposure, best=level)
    if found.level != level:
        return {"level": found.level, "why": found.why}
    with neighbours(world):
        commands = Commands(environ=environ, sandbox=found)
        directory = Path(world["state"], "commands", "call_1")
        argv = [os.path.realpath(sys.executable), "-I", "-S", str(workspace / "probes.py"), json.dumps(world)]
        kept = protected(workspace, world["home"])
        bounds = sandbox.Bounds(
            str(workspace), read_only=kept.read_only, stand_ins=kept.stand_ins if level == "full" else ()
        )
        done = sandbox.confine(found, argv, bounds, cwd=str(workspace), private=directory)
        spec = Spec(
            argv=done.argv, command="probes", cwd=str(workspace), call_id="call_1", session_id="ses_1", operation_id="op_1",
            timeout_ms=60_000, confinement=done.confinement,
            placeholders=kept.stand_ins if level == "full" else (), placeholder_lock=str(base / "state/stand-ins/w"),
            set_aside=kept.set_aside if level == "full" else (),
        )  # fmt: skip
        await commands.start(directory, spec, {**command_environment(environ, "op_1"), **done.environment})
        state = await commands.wait(directory)
        said = (directory / OUTPUT).read_text(errors="replace")
        commands.close()
    try:
        reached: dict[str, str] = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise SystemExit(f"the probes said {said!r}, {state}") from None
    return {"level": level, "why": "", "found": reached, "traces": traces(world)}


def traces(world: dict[str, Any]) -> list[str]:
    """What is different in the world afterwards: the probes' own word is not enough."""
    workspace, home, outside = Path(world["workspace"]), Path(world["home"]), Path(world["outside"])
    seen = {
        "write-outside": (outside / "written").exists(),
        "link": (outside / "through").exists(),
        "home-start-up": "owned" in (home / ".bashrc").read_text(),
        "git-hooks": (workspace / ".git/hooks/pre-commit").exists(),
        "git-settings": "run-me" in (workspace / ".git/config").read_text(),
        "nested-hooks": (workspace / "vendor/sub/.git/hooks/pre-commit").exists(),
        "editor-settings": (workspace / ".vscode/settings.json").read_text() == "{}",
        "editor-settings-new": (workspace / ".idea").exists() or (workspace / ".claude").exists(),
        "shell-settings": "curl" in (workspace / ".envrc").read_text(),
    }
    return sorted(name for name, there in seen.items() if there)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))))
