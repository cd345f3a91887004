"""Where the home itself is the workspace, accounts and the daemon's own places are not there, and nothing can stand in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from process.place import Place
from standfast.process import sandbox
from standfast.process.launch import Commands
from standfast.process.sandbox import Level
from standfast.tools.run_command import RunCommand

SECRETS = (
    ".ssh/id_ed25519",
    ".local/state/standfast/standfast.db",
    ".config/standfast/config.toml",
    ".npmrc",
    ".aws/credentials",
)


@pytest.mark.scenario("ATK-25")
@pytest.mark.scenario("ATK-24")
async def test_a_command_in_the_home_reads_no_account_and_moves_no_setting(tmp_path: Path, level: Level) -> None:
    place = Place(tmp_path, Commands())
    home = place.workspace
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("CANARY")
    (home / "project").mkdir()
    exposure = sandbox.expose(str(home), own=[str(home / ".local/state/standfast"), str(home / ".config/standfast")])
    place.commands.sandbox = sandbox.detect(exposure, best=level)
    if place.commands.sandbox.level != level:
        pytest.skip(f"this machine cannot do {level}: {place.commands.sandbox.why}")
    command = (
        f"cat {' '.join(SECRETS)}; mv .config aside && mkdir -p .config/standfast; echo owned > .config/standfast/config.toml; "
        "rm -rf .local; echo fine > project/new"
    )
    outcome = await place.call(RunCommand(place.commands), command=command)
    assert "CANARY" not in outcome.content
    assert {name: (home / name).read_text() for name in SECRETS} == dict.fromkeys(SECRETS, "CANARY")
    assert (home / "project/new").read_text() == "fine\n"
