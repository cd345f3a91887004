"""The socket: made closed to others, in a directory that is ours, in place of a left-over one (ATK-01, ATK-04, e14)."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from standfast.daemon.listener import listen
from standfast.daemon.peers import refusal
from standfast.errors import StandfastError

CONNECT = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('in', flush=True); sys.stdin.read()"


@pytest.mark.scenario("e14")
def test_the_socket_is_0600_in_a_0700_directory_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        listener = listen(tmp_path / "run" / "daemon.sock")
    finally:
        os.umask(before)
    assert stat.S_IMODE(listener.path.lstat().st_mode) == 0o600
    assert stat.S_IMODE(listener.path.parent.lstat().st_mode) == 0o700
    listener.close()
    assert not listener.path.exists()


@pytest.mark.scenario("ATK-04")
@pytest.mark.parametrize("trap", ["link", "open_to_others", "file"])
def test_a_directory_that_cannot_be_trusted_is_refused(tmp_path: Path, trap: str) -> None:
    place = tmp_path / "run"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif trap == "file":
        place.touch(mode=0o600)
    else:
        place.mkdir()
        place.chmod(0o777)
    with pytest.raises(StandfastError) as refused:
        listen(place / "daemon.sock")
    assert refused.value.reason == "PlaceNotPrivate"
    assert "STANDFAST_HOME" in refused.value.message


def test_a_socket_left_by_a_crash_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run" / "daemon.sock"
    first = listen(path)
    first.sock.close()  # as a SIGKILL leaves it: the file stays
    assert path.exists()
    second = listen(path)
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["daemon.sock"]
    second.close()


def test_a_listener_notices_that_its_file_is_gone_and_never_takes_away_another_ones(tmp_path: Path) -> None:
    path = tmp_path / "run" / "daemon.sock"
    first = listen(path)
    assert first.still_there()
    path.unlink()
    assert not first.still_there()
    second = listen(path)
    first.close()
    assert second.still_there()
    second.close()


def test_a_peer_of_the_same_user_in_the_same_namespaces_may_enter(tmp_path: Path) -> None:
    listener = listen(tmp_path / "run" / "daemon.sock")
    client = subprocess.Popen(
        [sys.executable, "-c", CONNECT, str(listener.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert client.stdout is not None
    assert client.stdout.readline() == b"in\n"
    sock, _ = listener.sock.accept()
    assert refusal(sock) is None
    client.communicate()
    sock.close()
    listener.close()


@pytest.mark.scenario("ATK-05")
def test_a_peer_in_another_network_namespace_is_refused(tmp_path: Path) -> None:
    """A sandboxed command that reaches the socket after all gets nothing from it."""
    probe = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    listener = listen(tmp_path / "run" / "daemon.sock")
    client = subprocess.Popen(
        ["unshare", "-n", sys.executable, "-c", CONNECT, str(listener.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == b"in\n"
    sock, _ = listener.sock.accept()
    assert "net namespace" in str(refusal(sock))
    client.communicate()
    sock.close()
    listener.close()
