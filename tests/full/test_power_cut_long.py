"""A power cut: what a client was told is on the disk, whatever the kernel had not written yet (F4). Needs root and loop devices.

The state lies on an ext4 of its own, in a file. The daemon is frozen at a chosen moment and the file copied: the copy is what
a disk would hold if the power failed then, since whatever was not flushed is only in the kernel's memory. The copy is mounted
(its journal is replayed) and a daemon is started on it. Tried on purpose with `synchronous=OFF`, it fails: the cuts do cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from crash import oracle
from standfast.cli.client import Json
from support import Editor, RunningDaemon, configure, end_daemon, open_socket, start_daemon
from support.daemon import places

CUTS = 20
PROMISES = {"user_message", "tool_started", "tool_result", "run_started", "run_finished", "assistant_message"}


@contextlib.contextmanager
def mounted(image: Path, at: Path) -> Generator[None]:
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A file with an empty ext4 in it; skips where none can be mounted."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(48 * 1024 * 1024)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
        with mounted(image, tmp_path / "try"):
            pass
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no ext4 on a loop device can be mounted here: {error}")
    return image


@pytest.mark.timeout(1800)
@pytest.mark.requirement("R3.2")
async def test_twenty_power_cuts_take_back_nothing_that_a_client_was_told(
    tmp_path: Path, workspace: Path, disk: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    configure(home, model={"provider": "scripted"})
    chance = random.Random(20)
    cuts: list[tuple[Path, list[Json]]] = []
    with mounted(disk, places(home).state):
        places(home).state.chmod(0o700)
        daemon = start_daemon(home)
        try:
            async with open_socket(home, [workspace]) as editor:
                session_id = await editor.create(workspace)
                for number in range(CUTS):
                    told = await _cut(daemon, editor, session_id, number, chance, disk, tmp_path / f"cut{number}.img")
                    cuts.append((tmp_path / f"cut{number}.img", told))
                daemon.kill()
        finally:
            end_daemon(home)
    promised = 0
    for image, told in cuts:
        promised += sum(event["type"] in PROMISES for event in told)
        await _after_the_cut(tmp_path / f"after-{image.stem}", workspace, image, session_id, told)
    assert promised > 10 * CUTS


async def _cut(
    daemon: RunningDaemon, editor: Editor, session_id: str, number: int, chance: random.Random, disk: Path, image: Path
) -> list[Json]:
    """Runs go on; freeze at a chosen event, copy the disk, go on. What the client had been told by then."""
    text = "\n".join(f"/write made{number}_{each}.txt\n{'z' * 500}\n/end" for each in range(6))
    run_id = await editor.start(session_id, text)
    seen, wanted = len(editor.events(session_id)), chance.randrange(5, 40)
    await editor.wait_for(
        lambda: len(editor.events(session_id)) >= seen + wanted or _ended(editor, run_id), "the chosen moment"
    )
    os.kill(daemon.pid, signal.SIGSTOP)
    await asyncio.sleep(0.05)  # what it had already sent arrives
    told = editor.events(session_id)
    shutil.copyfile(disk, image)
    os.kill(daemon.pid, signal.SIGCONT)
    await editor.run_end(run_id)
    return told


def _ended(editor: Editor, run_id: str) -> bool:
    return any(event["runId"] == run_id for event in editor.events(type_="run_finished"))


async def _after_the_cut(home: Path, workspace: Path, image: Path, session_id: str, told: list[Json]) -> None:
    home.mkdir(mode=0o700)
    configure(home, model={"provider": "scripted"})
    with mounted(image, places(home).state):
        daemon = start_daemon(home)
        try:
            async with open_socket(home, [workspace]) as editor:
                stored = await oracle.history(editor, session_id)
                oracle.check_log(oracle.Witness(session_id, events=told), stored)
                oracle.check_runs(stored)
                assert (await editor.attach(session_id, limit=1))["session"]["lastRun"]["status"] in oracle.TERMINAL
        finally:
            daemon.end()
    image.unlink()
