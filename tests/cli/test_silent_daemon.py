"""A daemon that is there but does not answer is said to be silent; nothing is started beside it (F19)."""

from __future__ import annotations

import os
import signal

import pytest

from standfast.cli import daemon_commands, talk
from standfast.daemon.spawn import Spawner
from standfast.errors import StandfastError
from support import RunningDaemon, environment


@pytest.mark.requirement("F19")
async def test_a_frozen_daemon_is_called_silent_and_answers_again_when_it_goes_on(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Spawner.of(environment(daemon.home))
    monkeypatch.setattr(talk, "ANSWER_S", 0.5)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        for command in (daemon_commands.status(door, as_json=True), daemon_commands.start(door, as_json=True)):
            with pytest.raises(StandfastError) as said:
                await command
            assert said.value.reason == "DaemonSilent"
            assert "no second daemon" in said.value.message
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    monkeypatch.undo()
    assert await daemon_commands.status(door, as_json=True) == 0
