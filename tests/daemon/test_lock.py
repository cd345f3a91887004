"""One daemon a store: locks that the kernel releases (F13, d14)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from standfast.daemon import lock
from standfast.errors import StandfastError

HOLDER = """
import sys
from pathlib import Path
from standfast.daemon import lock
assert lock.take(Path(sys.argv[1]), wait_s=0)
print("held", flush=True)
sys.stdin.read()
"""


def hold_in_another_process(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_a_lock_is_free_again_when_its_owner_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "daemon.lock"
    owner = hold_in_another_process(path)
    assert lock.held(path)
    assert lock.take(path, wait_s=0) is None
    end(owner)
    again = lock.take(path, wait_s=5)
    assert again is not None
    again.release()


def test_a_lock_is_not_inherited_by_a_child_that_outlives_its_owner(tmp_path: Path) -> None:
    """An inherited descriptor would keep the lock for as long as a command runs."""
    path = tmp_path / "daemon.lock"
    taken = lock.take(path, wait_s=0)
    assert taken is not None
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        taken.release()
        assert not lock.held(path)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_a_lock_file_that_was_deleted_no_longer_counts_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "daemon.lock"
    taken = lock.take(path, wait_s=0)
    assert taken is not None
    assert taken.still_ours()
    path.unlink()
    assert not taken.still_ours()
    path.touch()
    assert not taken.still_ours()
    taken.release()


@pytest.mark.scenario("d14")
def test_what_stands_in_a_lock_file_decides_nothing(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    path = tmp_path / "daemon.lock"
    path.write_text(json.dumps({"pid": stranger.pid}))
    try:
        taken = lock.take(path, wait_s=0)
        assert taken is not None
        taken.sign(pid=os.getpid())
        assert lock.signature(path) == {"pid": os.getpid()}
        taken.release()
        assert stranger.poll() is None
    finally:
        end_stranger(stranger)


def end_stranger(stranger: subprocess.Popen[bytes]) -> None:
    stranger.kill()
    stranger.wait()


@pytest.mark.scenario("ATK-08")
def test_a_link_planted_at_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "daemon.lock"
    path.symlink_to(victim)
    with pytest.raises(StandfastError) as refused:
        lock.take(path, wait_s=0)
    assert refused.value.reason == "PlaceNotUsable"
    assert victim.read_text() == "precious"
