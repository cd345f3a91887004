"""What a hostile command tries, each a function that returns True where it got through. Runs inside the sandbox; standard library only.

python probes.py WORLD-JSON  →  one JSON object {probe: "reached" | "blocked"}
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLONE_NEWUSER, PTRACE_ATTACH, PTRACE_DETACH = 0x10000000, 16, 17
IO_URING_SETUP = 425


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def unix_socket(world: dict[str, Any]) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(world["socket"])
        return True


def state_directory(world: dict[str, Any]) -> bool:
    return Path(world["state"], "standfast.db").read_text() != ""


def other_environment(world: dict[str, Any]) -> bool:
    """By the pid outside, and by every pid that is there."""
    pids = [str(world["victim"]), *(name for name in os.listdir("/proc") if name.isdigit())]
    for pid in pids:
        try:
            if world["canary"] in Path("/proc", pid, "environ").read_text(errors="replace"):
                return True
        except OSError:
            continue
    return False


def other_signal(world: dict[str, Any]) -> bool:
    os.kill(world["victim"], 0)
    return b"victim" in Path("/proc", str(world["victim"]), "cmdline").read_bytes()


def other_memory(world: dict[str, Any]) -> bool:
    if libc().ptrace(PTRACE_ATTACH, world["victim"], 0, 0) != 0:
        return False
    os.waitpid(world["victim"], 0)
    libc().ptrace(PTRACE_DETACH, world["victim"], 0, 0)
    return True


def tcp(world: dict[str, Any]) -> bool:
    with socket.create_connection(("127.0.0.1", world["tcp"]), 2) as sock:
        return sock.recv(5) == b"hello"


def udp(world: dict[str, Any]) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        sock.sendto(b"name?", ("127.0.0.1", world["udp"]))
        return sock.recv(5) == b"here!"


def write_outside(world: dict[str, Any]) -> bool:
    Path(world["outside"], "written").write_text("x")
    return Path(world["outside"], "written").exists()


def read_other_project(world: dict[str, Any]) -> bool:
    return Path(world["outside"], "secret").read_text() != ""


def temporary_files(world: dict[str, Any]) -> bool:
    return Path(world["temporary"]).read_text() != ""


def planted_link(world: dict[str, Any]) -> bool:
    link = Path(world["workspace"], "link")
    link.symlink_to(world["outside"])
    (link / "through").write_text("x")
    return (link / "through").exists()


def git_hooks(world: dict[str, Any]) -> bool:
    Path(world["workspace"], ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    return True


def git_settings(world: dict[str, Any]) -> bool:
    with Path(world["workspace"], ".git/config").open("a") as file:
        file.write("[core]\n\tfsmonitor = ./run-me\n")
    return True


def git_renamed(world: dict[str, Any]) -> bool:
    git = Path(world["workspace"], ".git")
    git.rename(git.with_name("gone"))
    git.with_name("gone").rename(git)
    return True


def nested_hooks(world: dict[str, Any]) -> bool:
    Path(world["workspace"], "vendor/sub/.git/hooks/pre-commit").write_text("#!/bin/sh\n")
    return True


def nested_renamed(world: dict[str, Any]) -> bool:
    """A directory above a nested repository put aside, so that another can stand in its place."""
    vendor = Path(world["workspace"], "vendor")
    vendor.rename(vendor.with_name("aside"))
    vendor.with_name("aside").rename(vendor)
    return True


def editor_settings(world: dict[str, Any]) -> bool:
    Path(world["workspace"], ".vscode/settings.json").write_text("{}")
    return True


def editor_settings_new(world: dict[str, Any]) -> bool:
    """There is no `.idea` and no `.claude` before."""
    for name in (".idea", ".claude"):
        Path(world["workspace"], name).mkdir(exist_ok=True)
        Path(world["workspace"], name, "new").write_text("x")
    return True


def shell_settings(world: dict[str, Any]) -> bool:
    Path(world["workspace"], ".envrc").write_text("curl\n")
    return True


def home_secret(world: dict[str, Any]) -> bool:
    return Path(world["home"], ".ssh/id_ed25519").read_text() != ""


def home_file(world: dict[str, Any]) -> bool:
    return Path(world["home"], "diary.txt").read_text() != ""


def home_start_up(world: dict[str, Any]) -> bool:
    """Only what is there for others too counts: the test looks at the home itself."""
    with Path(world["home"], ".bashrc").open("a") as file:
        file.write("echo owned\n")
    return world["canary"] in Path(world["home"], ".bashrc").read_text()


def environment_secret(world: dict[str, Any]) -> bool:
    return any(world["canary"] in value for value in os.environ.values())


def system_secret(world: dict[str, Any]) -> bool:
    return Path("/etc/shadow").read_text() != ""


def user_namespace(world: dict[str, Any]) -> bool:
    return libc().unshare(CLONE_NEWUSER) == 0


def mount(world: dict[str, Any]) -> bool:
    place = Path(world["workspace"], "mounted")
    place.mkdir(exist_ok=True)
    done = libc().mount(b"tmpfs", bytes(place), b"tmpfs", 0, None) == 0
    if done:
        libc().umount2(bytes(place), 0)
    return done


def io_uring(world: dict[str, Any]) -> bool:
    parameters = ctypes.create_string_buffer(256)
    return libc().syscall(IO_URING_SETUP, 1, parameters) >= 0


PROBES: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "daemon-socket": ("connect to the daemon's socket", unix_socket),
    "state": ("read the daemon's store", state_directory),
    "environ": ("read another process's environment", other_environment),
    "signal": ("signal another process", other_signal),
    "ptrace": ("attach to another process", other_memory),
    "tcp": ("network: TCP", tcp),
    "udp": ("network: UDP (names are asked this way)", udp),
    "write-outside": ("write outside the workspace", write_outside),
    "other-project": ("read another project", read_other_project),
    "tmp": ("read others' temporary files", temporary_files),
    "link": ("write through a link it made", planted_link),
    "home-secret": ("read a key in the home", home_secret),
    "home-file": ("read any other file in the home", home_file),
    "home-start-up": ("write a shell start-up file", home_start_up),
    "env-secret": ("find a token in its own environment", environment_secret),
    "system-secret": ("read what only root may read", system_secret),
    "git-hooks": ("write `.git/hooks`", git_hooks),
    "git-settings": ("write `.git/config`", git_settings),
    "git-renamed": ("rename `.git`", git_renamed),
    "nested-hooks": ("write a nested repository's hooks", nested_hooks),
    "nested-renamed": ("put a directory in the place of a nested repository's", nested_renamed),
    "editor-settings": ("change editor settings", editor_settings),
    "editor-settings-new": ("make editor or agent settings that were not there", editor_settings_new),
    "shell-settings": ("change `.envrc`", shell_settings),
    "mount": ("mount something", mount),
    "io-uring": ("use io_uring (goes round a filter)", io_uring),
    "user-namespace": ("make a user namespace", user_namespace),
}
"""Name → (what it tries, as people read it; the attempt). `user-namespace` changes the process, so it comes last."""


def attempt(probe: Callable[[dict[str, Any]], bool], world: dict[str, Any]) -> str:
    try:
        return "reached" if probe(world) else "blocked"
    except OSError:
        return "blocked"


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps({name: attempt(probe, given) for name, (_, probe) in PROBES.items()}))
