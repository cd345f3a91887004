"""The daemon's life: one for a store, found by all, gone when nobody needs it (F13, F19, d14, ATK-01, ATK-38)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from standfast.daemon import lock
from standfast.daemon.spawn import Spawner
from standfast.errors import StandfastError
from support import RunningDaemon, configure, environment, open_editor, open_socket, start_daemon
from support.daemon import DAEMON, places
from support.editor import LSP


async def pid_of(home: Path) -> int:
    async with open_socket(home) as client:
        status = await client.request("standfast/daemon/status", {})
    return status["pid"]


async def test_twenty_editors_that_open_at_once_share_one_daemon(home: Path) -> None:
    async def open_one() -> int:
        async with open_editor(home) as editor:
            return (await editor.request("standfast/daemon/status", {}))["pid"]

    pids = await asyncio.gather(*(open_one() for _ in range(20)))
    assert len(set(pids)) == 1


async def test_a_second_daemon_stands_down_and_says_so(home: Path) -> None:
    first = start_daemon(home)
    second = subprocess.run(DAEMON, env=environment(home), capture_output=True, check=False, timeout=60)
    assert second.returncode == 1
    assert b"is running already" in second.stderr
    assert await pid_of(home) == first.pid
    assert first.end() == 0


@pytest.mark.scenario("d14")
async def test_the_remains_of_a_killed_daemon_do_not_keep_the_next_one_away(home: Path) -> None:
    first = start_daemon(home)
    first.kill()
    assert places(home).socket.exists()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        places(home).lock.write_text(f'{{"pid": {stranger.pid}}}')
        async with open_editor(home) as editor:
            status = await editor.request("standfast/daemon/status", {})
        assert status["pid"] not in (first.pid, stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.requirement("F19")
async def test_a_frozen_daemon_is_not_replaced(home: Path) -> None:
    daemon = start_daemon(home)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        editor = subprocess.Popen(LSP, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        places(home).socket.unlink()  # worse: and its socket is swept away
        second = subprocess.run(DAEMON, env=environment(home), capture_output=True, check=False, timeout=60)
        assert second.returncode == 1
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    editor.communicate(timeout=20)
    assert lock.signature(places(home).lock)["pid"] == daemon.pid
    assert daemon.end() == 0


async def test_a_socket_that_was_swept_away_comes_back(home: Path) -> None:
    daemon = start_daemon(home)
    async with open_socket(home) as old:
        places(home).socket.unlink()
        sock = await asyncio.to_thread(Spawner.of(environment(home)).reach)  # waits for it, and starts no second one
        sock.close()
        assert await pid_of(home) == daemon.pid
        await old.request("standfast/daemon/status", {})  # who was inside stays inside
    assert daemon.end() == 0


async def test_a_deleted_lock_file_does_not_make_two_daemons(home: Path) -> None:
    daemon = start_daemon(home)
    places(home).lock.unlink()
    second = subprocess.run(DAEMON, env=environment(home), capture_output=True, check=False, timeout=60)
    assert second.returncode == 1
    assert await pid_of(home) == daemon.pid
    assert daemon.end() == 0


async def test_a_daemon_that_nobody_needs_ends_and_takes_its_socket_with_it(home: Path) -> None:
    configure(home, daemon={"idle_exit_s": 0.3})
    daemon = start_daemon(home)
    assert await daemon.exited() == 0
    assert not places(home).socket.exists()
    assert not lock.held(places(home).lock)


async def test_a_daemon_with_a_client_stays_until_the_client_has_gone(home: Path) -> None:
    configure(home, daemon={"idle_exit_s": 0.3})
    daemon = start_daemon(home)
    async with open_socket(home):
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(1.2)
    assert await daemon.exited() == 0


async def test_clients_that_come_while_it_leaves_always_find_a_daemon(home: Path) -> None:
    """The idle exit holds the spawn lock and empties the accept queue first."""
    configure(home, daemon={"idle_exit_s": 0.05})
    for _ in range(6):
        async with open_editor(home) as editor:
            assert await editor.request("standfast/daemon/status", {})
        await asyncio.sleep(0.05)


async def test_sigterm_ends_it_in_order_although_a_client_is_connected(home: Path) -> None:
    daemon = start_daemon(home)
    async with open_socket(home) as client:
        assert await asyncio.to_thread(daemon.end) == 0
        await client.wait_for(client.lost.is_set, "the end of the connection")
    assert not places(home).socket.exists()


async def test_a_daemon_whose_state_directory_is_taken_away_ends_instead_of_living_beside_the_next(home: Path) -> None:
    daemon = start_daemon(home)
    (home / "state").rename(home / "elsewhere")
    assert await daemon.exited() == 0


def test_stop_reaches_exactly_the_running_daemon(home: Path) -> None:
    spawner = Spawner.of(environment(home))
    assert not spawner.stop()
    spawner.reach().close()
    assert spawner.stop()
    assert spawner.pid() is None


@pytest.mark.scenario("ATK-01")
async def test_it_listens_on_a_unix_socket_and_nothing_else(shared_daemon: RunningDaemon) -> None:
    mine = {
        os.readlink(link)
        for link in Path(f"/proc/{shared_daemon.pid}/fd").iterdir()
        if link.is_symlink() and os.readlink(link).startswith("socket:")
    }
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{shared_daemon.pid}/net/{table}").read_text().splitlines()[1:]:
            assert f"socket:[{line.split()[9]}]" not in mine


@pytest.mark.scenario("e14")
@pytest.mark.scenario("ATK-38")
def test_nothing_that_it_leaves_is_readable_by_others_even_with_an_open_umask(home: Path) -> None:
    daemon = start_daemon(home, umask=0)
    loose = [
        (str(path), oct(path.lstat().st_mode))
        for path in [home / "state", home / "run", *home.glob("state/**/*"), *home.glob("run/*")]
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]
    assert loose == []
    assert stat.S_IMODE(places(home).socket.lstat().st_mode) == 0o600
    assert daemon.end() == 0


@pytest.mark.scenario("ATK-37")
async def test_its_memory_and_environment_are_closed_and_it_dumps_no_core(shared_daemon: RunningDaemon) -> None:
    limits = Path(f"/proc/{shared_daemon.pid}/limits").read_text()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    assert Path(f"/proc/{shared_daemon.pid}/environ").stat().st_uid == 0  # not dumpable: the kernel gives it to root


async def test_a_path_that_is_too_long_for_a_socket_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    daemon = start_daemon(deep)
    try:
        async with open_socket(deep) as client:
            status = await client.request("standfast/daemon/status", {})
        assert len(os.fsencode(status["socket"])) <= 100
        assert Path(status["socket"]).parent.name == f"standfast-{os.getuid()}"
    finally:
        assert daemon.end() == 0


def test_a_place_that_cannot_be_used_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StandfastError) as refused:
        Spawner.of(environment(tmp_path / "home")).reach()
    assert refused.value.reason in ("PlaceNotUsable", "PlaceNotPrivate")
    assert "STANDFAST_HOME" in refused.value.message


@pytest.mark.parametrize("broken", ["aiosqlite", "pygls"])
def test_a_daemon_with_a_broken_library_says_so_at_once_and_leaves_nothing_behind(
    home: Path, tmp_path: Path, broken: str
) -> None:
    (tmp_path / f"{broken}.py").write_text("raise ImportError('broken installation')\n")
    door = Spawner.of(environment(home, PYTHONPATH=str(tmp_path)))
    with pytest.raises(StandfastError) as refused:
        door.reach()
    assert refused.value.reason == "DaemonNotStarted"
    assert "broken installation" in places(home).log.with_suffix(".err").read_text()
    free = lock.take(places(home).lock, wait_s=10)
    assert free is not None
    free.release()
    assert not places(home).socket.exists()


async def test_a_connection_that_says_nothing_sensible_harms_nobody(shared_daemon: RunningDaemon) -> None:
    """HTTP bytes, noise and a cut message (ATK-02)."""
    for noise in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 100, b"Content-Length: 10\r\n\r\n{"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(places(shared_daemon.home).socket))
            sock.sendall(noise)
    assert await pid_of(shared_daemon.home) == shared_daemon.pid
