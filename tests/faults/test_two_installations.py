"""Two installations of different versions on one store (F14): a newer one is a copy of the package with later numbers, run for real.

Never two versions at once: whoever meets the other's daemon is told both versions and one thing to do. Upgrades take everything
along; whoever goes back changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import standfast
from crash import oracle
from crash.commands import call_of, no_process_is_left, run_what_is_said, settled
from fake_api import FakeApi, Gate, reply
from standfast.cli.client import Json, RequestFailed
from support import Editor, configure, environment, open_socket, start_daemon
from support.daemon import DAEMON, places
from support.editor import LSP
from support.waiting import until

HERE = Path(standfast.__file__).parent
LATER = {
    "__init__.py": (r'__version__ = ".*"', '__version__ = "99.0"'),
    "protocol/base.py": (r"^PROTOCOL_VERSION = 1$", "PROTOCOL_VERSION = 2"),
    "cli/client.py": (r"^PROTOCOL_VERSION = 1$", "PROTOCOL_VERSION = 2"),
    "process/record.py": (r"^VERSION = 1$", "VERSION = 2"),
    "store/schema.py": (
        r"^(STEPS: .*)\)$",
        r"""\1, "ALTER TABLE sessions ADD COLUMN shiny TEXT NOT NULL DEFAULT 'x';\\n")""",
    ),
}
"""File → what a later version has otherwise: of itself, of the wire, of commands' records, of the store."""


@dataclass(frozen=True)
class Installation:
    env: dict[str, str]

    def cli(self, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "standfast", *words], env={**environment(home), **self.env},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    place = tmp_path_factory.mktemp("newer")
    shutil.copytree(HERE, place / "standfast", ignore=shutil.ignore_patterns("__pycache__"))
    for name, (old, new) in LATER.items():
        file = place / "standfast" / name
        text, count = re.subn(old, new, file.read_text(), flags=re.MULTILINE)
        assert count == 1, f"teach this test what {name} looks like now"
        file.write_text(text)
    made = Installation({"PYTHONPATH": str(place)})
    assert "99.0" in made.cli(place, "--version").stdout
    return made


OLDER = Installation({})


async def _refused(home: Path, env: dict[str, str], version: int) -> RequestFailed:
    """What an editor of this version reads whose `standfast lsp` meets the other's daemon."""
    async with Editor.over_process(*LSP, env={**environment(home), **env}) as editor:
        with pytest.raises(RequestFailed) as refused:
            await editor.initialize(plain=True, experimental={"standfast": {"protocolVersion": version}})
    assert refused.value.reason == "VersionMismatch"
    return refused.value


async def test_a_newer_program_that_meets_the_older_daemon_is_told_both_versions_and_its_way_works(
    home: Path, workspace: Path, newer: Installation
) -> None:
    gate = Gate()
    with FakeApi() as api:
        api.push(reply("One ", "two.").insert(gate, after="text_delta"))
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            run_id = await editor.start(session_id, "count")
            await gate.reached()
            told = (await _refused(home, newer.env, 2)).message
            assert "version 2" in told and "version 1" in told and "standfast daemon stop --wait" in told
            second = await asyncio.to_thread(newer.cli, home, *DAEMON[4:])
            assert second.returncode == 1 and "running already. Nothing was changed" in second.stderr
            listing = await asyncio.to_thread(newer.cli, home, "sessions")
            assert listing.returncode != 0 and "standfast daemon stop --wait" in listing.stdout + listing.stderr
            status = await asyncio.to_thread(newer.cli, home, "daemon", "status", "--json")
            assert json.loads(status.stdout)["version"] == standfast.__version__, "it says who is there"
            stopping = asyncio.create_task(asyncio.to_thread(newer.cli, home, "daemon", "stop", "--wait"))
            await until(lambda: "draining" in places(home).log.read_text(), "the daemon to be asked")
            assert daemon.process.poll() is None, "not while a run goes on"
            gate.release()
            assert (await editor.run_end(run_id))["status"] == "succeeded"
            seen = await oracle.history(editor, session_id)
            assert (await stopping).returncode == 0
            assert await daemon.exited() == 0
        start_daemon(home, {**oracle.environment_of(api), **newer.env})
        async with _plain(home) as after:
            assert await oracle.history(after, session_id) == seen


async def test_an_older_client_that_meets_the_newer_daemon_is_told_to_update_itself(
    home: Path, newer: Installation
) -> None:
    configure(home, model={"provider": "scripted"})
    daemon = start_daemon(home, newer.env)
    told = (await _refused(home, OLDER.env, 1)).message
    assert "version 1" in told and "version 2" in told and "Update the client" in told
    status = await asyncio.to_thread(OLDER.cli, home, "daemon", "status", "--json")
    assert json.loads(status.stdout)["version"] == "99.0"
    assert daemon.end() == 0


def _plain(home: Path) -> contextlib.AbstractAsyncContextManager[Editor]:
    """An editor that names no version: it is served by any."""
    return open_socket(home, plain=True)


@pytest.mark.requirement("R12.2")
@pytest.mark.scenario("a17")
@pytest.mark.scenario("a18")
async def test_a_running_command_goes_over_an_upgrade_and_whoever_goes_back_leaves_the_newer_one_alone(
    home: Path, workspace: Path, newer: Installation
) -> None:
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url})
        env = oracle.environment_of(api)
        older = start_daemon(home, env)
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await _command(editor, session_id, home, "one")
            older.kill()
        later = start_daemon(home, {**env, **newer.env})
        async with _plain(home) as editor:
            call = call_of(await editor.attach(session_id))
            assert call["verdict"] == "running", "the older program's command is adopted"
            (workspace / "one.go").touch()
            result = await settled(editor, session_id, call["callId"])
            assert (result["exitCode"], result["recovered"]) == (7, True)
            session_id = await editor.create(workspace)
            await _command(editor, session_id, home, "two")
            seen = await oracle.history(editor, session_id)
            later.kill()
        assert list((places(home).store.parent / "backups").glob("before-migration-v3-*.db")), (
            "a backup of the older store"
        )
        before = _bytes(home)
        back = start_daemon(home, env)
        async with open_socket(home, [workspace]) as editor:
            assert (await oracle.history(editor, session_id))[: len(seen)] == seen, "it can be read"
            with pytest.raises(RequestFailed, match="newer Standfast") as refused:
                await editor.start(session_id, "go on")
            assert refused.value.reason == "StoreReadOnly" and "version 4; this one knows 3" in refused.value.message
            [told] = [
                one for one in editor.told("standfast/daemon/changed")[-1]["degraded"] if "newer" in one["message"]
            ]
            assert told["code"] == "store-read-only" and "Update Standfast" in told["message"]
        assert back.end() == 0
        assert _bytes(home) == before
        again = start_daemon(home, {**env, **newer.env})
        async with _plain(home) as editor:
            call = call_of(await editor.attach(session_id))
            assert call["verdict"] == "running", "nobody ended it meanwhile"
            (workspace / "two.go").touch()
            result = await settled(editor, session_id, call["callId"])
            assert (result["exitCode"], result["recovered"]) == (7, True)
            assert (await editor.run_end(await editor.start(session_id, "go on")))["status"] == "succeeded"
            oracle.check_calls(await oracle.history(editor, session_id))
        await no_process_is_left(workspace)
        assert again.end() == 0
        assert not api.refused


async def test_a_command_whose_record_is_a_newer_programs_is_called_unknown_and_left_alone(
    home: Path, workspace: Path
) -> None:
    """A store that was taken back from a backup, beside commands of the newer program."""
    with FakeApi(run_what_is_said) as api:
        configure(home, model={"base_url": api.url})
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            session_id = await editor.create(workspace)
            await _command(editor, session_id, home, "one")
            daemon.kill()
        [record] = places(home).commands.glob("*/record.json")
        theirs = json.loads(record.read_text()) | {"version": 2, "shiny": True}
        record.write_text(json.dumps(theirs))
        daemon = start_daemon(home, oracle.environment_of(api))
        async with open_socket(home, [workspace]) as editor:
            call = call_of(await editor.attach(session_id))
            assert call["verdict"] == "unknown" and "newer Standfast (version 2)" in call["evidence"]
            assert (await editor.run_end(await editor.start(session_id, "go on")))["status"] == "succeeded"
            assert "unknown" in api.requests[-1].whole_text
            assert json.loads(record.read_text()) == theirs
            assert not (record.parent / "exit.json").exists(), "it was ended"
            (workspace / "one.go").touch()
            await until(lambda: (workspace / "one.out").exists(), "the command to go on")
        await no_process_is_left(workspace)
        assert daemon.end() == 0


async def _command(editor: Editor, session_id: str, home: Path, name: str) -> None:
    """A command that waits for a file, started and on record."""
    known = len(list(places(home).commands.glob("*/record.json")))
    await editor.start(session_id, f"$ while ! test -e {name}.go; do sleep 0.05; done; echo x >> {name}.out; exit 7")
    await until(lambda: len(list(places(home).commands.glob("*/record.json"))) > known, "its record")


def _bytes(home: Path) -> Json:
    """The store's and its log's bytes, and every record of a command."""
    store = places(home).store
    kept = [store, store.with_name(store.name + "-wal"), *places(home).commands.glob("*/*.json")]
    return {path.name: path.read_bytes() for path in kept if path.exists()}
