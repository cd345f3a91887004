"""The store under fire, through the daemon: what the person is told, that nothing begins unrecorded, and that it goes on after.

reliability.md F6-F12, F18. tests/store holds the same faults to the store itself. The model is the scripted one: a message's
lines are its calls.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from crash import oracle
from fake_api import FakeApi, reply, tool
from standfast.cli.client import Json, RequestFailed
from support import Editor, RunningDaemon, configure, environment, open_socket, start_daemon
from support.daemon import places
from support.editor import LSP
from support.tiers import tier
from support.waiting import until

WRITE = "/write made.txt\nhello\n/end"
APPENDS = 11
"""How often one run with one write appends, session_created and its end included."""
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""Without root's power over files, also where the tests run as root: the same user, without any capability."""


@contextlib.asynccontextmanager
async def served(
    home: Path, folder: Path, env: dict[str, str] | None = None, under: Sequence[str] = ()
) -> AsyncGenerator[tuple[RunningDaemon, Editor]]:
    """A daemon and an editor on it, in its namespaces if it has others; the daemon is ended in order."""
    daemon = start_daemon(home, env, under=under)
    try:
        if under:  # it lets nobody in from other namespaces, and cannot look at whoever may do more than itself
            like_it = ("nsenter", "-t", str(daemon.pid), "-m", "--") if "unshare" in under else under
            async with Editor.over_process(*like_it, *LSP, env=environment(home)) as editor:
                await editor.initialize([folder.as_uri()])
                yield daemon, editor
        else:
            async with open_socket(home, [folder]) as editor:
                yield daemon, editor
    finally:
        if daemon.process.poll() is None:
            daemon.end()


def scripted(home: Path, **more: dict[str, object]) -> None:
    configure(home, model={"provider": "scripted"}, **more)


def degraded(editor: Editor) -> dict[str, str]:
    """What the last `daemon/changed` said: code → sentence."""
    told = editor.told("standfast/daemon/changed")
    return {one["code"]: one["message"] for one in told[-1]["degraded"]} if told else {}


def codes_of(changed: Json) -> set[str]:
    return {one["code"] for one in changed["degraded"]}


def streamed(stored: list[Json]) -> list[str]:
    """The text that was streamed before each message."""
    texts, text = [], ""
    for event in stored:
        if event["type"] == "assistant_chunk":
            text += event["text"]
        elif event["type"] == "model_request":
            text = ""
        elif event["type"] == "assistant_message":
            texts.append(text)
    return texts


def cli(home: Path, *words: str) -> tuple[int, Json]:
    """`standfast … --json`: exit code and answer."""
    done = subprocess.run(
        [sys.executable, "-m", "standfast", *words, "--json"],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or done.stderr)


async def one_run(editor: Editor, session_id: str, text: str = WRITE) -> Json:
    """Attach, send a message, and wait for the end of its run."""
    await editor.attach(session_id)
    return await editor.run_end(await editor.start(session_id, text))


@pytest.mark.scenario("a11")
@pytest.mark.requirement("R3.2")
@pytest.mark.parametrize(
    ("at", "code"),
    tier(
        [*((at, "EIO") for at in (2, 4, 5, 6, 7, 10)), *((at, "ENOSPC") for at in (6, 7, 11)), (6, "EROFS")],
        [(at, code) for code in ("EIO", "ENOSPC", "EROFS") for at in range(1, APPENDS + 1)],
    ),
)
async def test_whatever_append_fails_the_run_says_so_nothing_runs_unrecorded_and_it_goes_on_after(
    home: Path, workspace: Path, at: int, code: str
) -> None:
    """The disk refuses the n-th append of a run and takes the next again."""
    scripted(home)
    reason = {"ENOSPC": "StorageFull", "EIO": "StoreFailed", "EROFS": "StoreReadOnly"}[code]
    made = workspace / "made.txt"
    async with served(home, workspace, {"FAILPOINTS": f"before_append=error@{at}:{code}"}) as (_, editor):
        refused: str | None = None
        session_id = ""
        for _ in range(2):  # a request that is refused can simply be made again
            try:
                session_id = session_id or await editor.create(workspace)
                run_id = await editor.start(session_id, WRITE)
                break
            except RequestFailed as error:
                refused = error.reason
        end = await editor.run_end(run_id)
        if refused is None and end["status"] != "succeeded":
            refused = end["error"]["reason"]
            assert "was not stored" in end["error"]["message"]
        assert refused in (reason, None), refused
        started = editor.events(session_id, "tool_started")
        told_unsaved = any("not-saving" in codes_of(one) for one in editor.told("standfast/daemon/changed"))
        assert bool(started) or not made.exists(), "an effect without a durable intent"
        await editor.wait_for(lambda: "not-saving" not in degraded(editor), "it to be saving again")
        assert (await one_run(editor, session_id, "/read a.py"))["status"] == "succeeded"
        stored = await oracle.history(editor, session_id)
        oracle.check_log(oracle.Witness(session_id, events=editor.events(session_id)), stored)
        oracle.check_runs(stored)
        for verdict in oracle.check_calls(stored).values():
            assert verdict is None or verdict == ("applied" if made.exists() else "not_applied")
        for message, text in zip(oracle.of_type(stored, "assistant_message"), streamed(stored), strict=True):
            assert message["blocks"][0]["text"] == text, "streamed text was lost"
        results = {event["callId"] for event in oracle.of_type(stored, "tool_result")}
        assert {event["callId"] for event in oracle.of_type(stored, "tool_call")} == results
    assert cli(home, "doctor")[1]["ok"] is True
    if code != "ENOSPC":  # the ballast makes good for some where the disk is full
        assert told_unsaved, "the fault was never met: this point tests nothing"


@pytest.mark.requirement("R3.2")
async def test_a_run_end_that_the_disk_refuses_is_stored_as_soon_as_it_can_be(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    """The model says one piece of text only, so that the run's end is exactly the tenth append."""
    fake_api.push(reply(tools=[tool("list_files")]), reply("Done."))
    configure(home, model={"base_url": fake_api.url})
    env = {"ANTHROPIC_API_KEY": fake_api.key, "FAILPOINTS": "before_append=error@10:EIO"}
    async with served(home, workspace, env) as (_, editor):
        session_id = await editor.create(workspace)
        run_id = await editor.start(session_id, "look")
        told = await editor.wait_for(lambda: degraded(editor).get("not-saving"), "the person to be told")
        assert "This step was not stored" in told or "this step was not stored" in told
        assert oracle.of_type(editor.events(session_id), "run_finished") == []
        assert len(oracle.of_type(editor.events(session_id), "assistant_message")) == 2, "another append was refused"
        assert (await editor.run_end(run_id))["status"] == "succeeded"
        await editor.wait_for(lambda: "not-saving" not in degraded(editor), "it to be saving again")


@pytest.mark.scenario("a11")
async def test_on_a_full_disk_nothing_begins_reads_go_on_and_with_space_the_run_is_resumed(
    home: Path, workspace: Path
) -> None:
    """A real one: 12 MiB for the state, 6 of them taken by something else until the test takes it away."""
    scripted(home)
    state = places(home).state
    state.mkdir(mode=0o700)
    mount = f'mount -t tmpfs -o size=12m,mode=700 none {state} && head -c 6M /dev/zero > {state}/other && exec "$@"'
    under = ("unshare", "-m", "sh", "-c", mount, "sh")
    if os.geteuid() != 0:
        pytest.skip("the test must reach into the daemon's mounts, which takes root")
    async with served(home, workspace, under=under) as (daemon, editor):
        session_id = await editor.create(workspace)
        text = "/write big.txt\n" + "x" * 700_000 + "\n/end"
        refused, run_id = "", ""
        for _ in range(12):
            try:
                run_id = await editor.start(session_id, text)
            except RequestFailed as error:
                refused = error.reason
                break
            end = await editor.run_end(run_id)
            if end["status"] == "failed":
                refused = end["error"]["reason"]
                assert "disk is full" in end["error"]["message"]
                break
        assert refused == "StorageFull"
        told = [one for change in editor.told("standfast/daemon/changed") for one in change["degraded"]]
        assert any(one["message"].startswith("Nothing is being saved: The disk is full.") for one in told), told
        made = workspace / "made.txt"
        before = _stamp(workspace / "big.txt")
        with contextlib.suppress(RequestFailed):
            assert (await one_run(editor, session_id, text.replace("x", "y")))["status"] == "failed"
        assert _stamp(workspace / "big.txt") == before, "something was done that could not be recorded"
        stored = await oracle.history(editor, session_id)
        assert stored[-1]["type"] == "run_finished", "the ballast took the end of the run"
        Path(f"/proc/{daemon.pid}/root{state}/other").unlink()
        resumed = (await editor.request("standfast/run/resume", {"runId": run_id}))["runId"]
        assert (await editor.run_end(resumed))["status"] == "succeeded"
        assert (await one_run(editor, await editor.create(workspace)))["status"] == "succeeded"
        assert made.read_text() == "hello\n"
        await editor.wait_for(lambda: "not-saving" not in degraded(editor), "it to be saving again")
        stored = await oracle.history(editor, session_id)
        oracle.check_log(oracle.Witness(session_id, events=editor.events(session_id)), stored)
        oracle.check_runs(stored)


def _stamp(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None


@pytest.mark.scenario("a13")
async def test_a_shell_that_holds_the_store_delays_a_run_and_kills_nothing(home: Path, workspace: Path) -> None:
    scripted(home)
    async with served(home, workspace) as (_, editor):
        session_id = await editor.create(workspace)
        holder = sqlite3.connect(places(home).store, isolation_level=None)
        with contextlib.closing(holder):
            holder.execute("BEGIN IMMEDIATE")
            starting = oracle.asyncio.ensure_future(editor.start(session_id, WRITE))
            listed = await editor.request("standfast/session/list", {"workspaceUri": workspace.as_uri()})
            assert [one["sessionId"] for one in listed["sessions"]] == [session_id], "reads go on"
            assert not starting.done()
            holder.execute("ROLLBACK")
        assert (await editor.run_end(await starting))["status"] == "succeeded"


async def history_and_death(home: Path, folder: Path) -> tuple[str, list[Json]]:
    """A session with one run, its daemon killed: (its id, what the client saw)."""
    scripted(home)
    daemon = start_daemon(home)
    async with open_socket(home, [folder]) as editor:
        session_id = await editor.create(folder)
        await one_run(editor, session_id)
        seen = await oracle.history(editor, session_id)
        daemon.kill()
    return session_id, seen


def into_one_file(store: Path) -> None:
    """Everything in the database itself, nothing in its log."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.scenario("a15")
async def test_a_damaged_page_is_no_crash_loop_the_bytes_are_kept_and_the_person_is_told_where(
    home: Path, workspace: Path
) -> None:
    session_id, _ = await history_and_death(home, workspace)
    store = places(home).store
    into_one_file(store)
    data = bytearray(store.read_bytes())
    data[8192 : 8192 + 4096] = bytes(4096)
    store.write_bytes(data)
    async with served(home, workspace) as (_, editor):
        told = await editor.wait_for(lambda: degraded(editor).get("store-replaced"), "the person to be told")
        [kept] = [name for name in store.parent.glob("*.corrupt-*") if not name.name.endswith(("-wal", "-shm"))]
        assert str(kept) in told
        assert kept.read_bytes() == data
        assert session_id in [
            one["sessionId"] for one in (await editor.request("standfast/session/list", {}))["sessions"]
        ]
        status = cli(home, "daemon", "status")[1]
        assert "store-replaced" in [one["code"] for one in status["degraded"]]
        assert (await one_run(editor, session_id, "/read a.py"))["status"] == "succeeded"
        assert str(kept) in cli(home, "doctor")[1]["kept"]
    async with served(home, workspace) as (_, editor):
        assert "store-replaced" not in degraded(editor), "the second start is an ordinary one"


@pytest.mark.scenario("ATK-54")
async def test_a_flipped_byte_in_the_write_ahead_log_is_noticed_by_whoever_saw_more(
    home: Path, workspace: Path
) -> None:
    session_id, seen = await history_and_death(home, workspace)
    log = places(home).store.with_name(places(home).store.name + "-wal")
    data = bytearray(log.read_bytes())
    assert len(data) > 8192
    data[len(data) // 2] ^= 0x40
    log.write_bytes(data)
    async with served(home, workspace) as (_, editor):
        attached = await editor.attach(session_id, afterSeq=seen[-1]["seq"], afterHash=seen[-1]["hash"])
        assert attached["damage"]["atSeq"] < seen[-1]["seq"]
        assert "cut" in attached["damage"]["reason"]
        uri = f"standfast:/session/{session_id}"
        shown = await editor.wait_for(
            lambda: [one for one in editor.told("textDocument/publishDiagnostics") if damage_in(one)], "a diagnostic"
        )
        assert shown[-1]["uri"].startswith(uri) or session_id in shown[-1]["uri"]


def damage_in(published: Json) -> bool:
    return any(one.get("code") == "history-damaged" for one in published["diagnostics"])


@pytest.mark.scenario("a17")
async def test_a_store_of_a_newer_version_is_read_and_its_bytes_stay(home: Path, workspace: Path) -> None:
    session_id, seen = await history_and_death(home, workspace)
    store = places(home).store
    with contextlib.closing(sqlite3.connect(store)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("ALTER TABLE sessions ADD COLUMN shiny TEXT NOT NULL DEFAULT 'x'")
        connection.execute(f"PRAGMA user_version={version + 1}")
        connection.commit()
    into_one_file(store)
    before = store.read_bytes()
    async with served(home, workspace) as (_, editor):
        assert await oracle.history(editor, session_id) == seen
        with pytest.raises(RequestFailed, match=f"version {version + 1}; this one knows {version}") as raised:
            await editor.start(session_id, WRITE)
        assert raised.value.reason == "StoreReadOnly"
        assert "store-read-only" in degraded(editor)
    assert store.read_bytes() == before
    assert not (workspace / "made2.txt").exists()


@pytest.mark.scenario("a18")
async def test_a_daemon_killed_while_it_migrates_leaves_a_store_that_the_next_one_takes_up(
    home: Path, workspace: Path
) -> None:
    session_id, seen = await history_and_death(home, workspace)
    store = places(home).store
    old = _as_version_1(store)
    with pytest.raises(AssertionError):
        start_daemon(home, {"FAILPOINTS": "in_migration=kill@2"})
    async with served(home, workspace) as (_, editor):
        assert await oracle.history(editor, session_id) == seen
        assert (await one_run(editor, session_id, "/read a.py"))["status"] == "succeeded"
    backups = list((store.parent / "backups").glob("before-migration-v1-*.db"))
    assert backups, f"no backup of version {old}"
    assert cli(home, "doctor")[1]["differences"] == []
    assert cli(home, "doctor", "--rebuild")[1]["rebuilt"] == []


def _as_version_1(store: Path) -> int:
    """The store as the first release left it: what the later steps added is taken away."""
    from standfast.store import schema

    later = "".join(schema.STEPS[1:])
    with contextlib.closing(sqlite3.connect(store)) as connection:
        for statement in schema.statements(later):
            words = statement.split()
            if words[:2] == ["CREATE", "TABLE"]:
                connection.execute(f"DROP TABLE IF EXISTS {words[2]}")
            elif words[:3] == ["CREATE", "VIRTUAL", "TABLE"]:
                connection.execute(f"DROP TABLE IF EXISTS {words[3]}")
            elif words[:2] == ["ALTER", "TABLE"]:
                pytest.fail(f"teach this test to undo: {statement}")
        connection.execute("PRAGMA user_version=1")
        connection.commit()
    into_one_file(store)
    return 1


@pytest.mark.scenario("ATK-53")
@pytest.mark.scenario("d12")
@pytest.mark.parametrize("what", ["unreadable", "another program's", "a link", "no database"])
async def test_a_store_that_cannot_be_opened_is_said_with_its_path_and_the_daemon_lives(
    home: Path, workspace: Path, tmp_path: Path, what: str
) -> None:
    scripted(home)
    store = places(home).store
    store.parent.mkdir(mode=0o700, parents=True)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    if what == "a link":
        store.symlink_to(tmp_path / "other.db")
    else:
        data = b"no database at all, long enough to look like one " * 200
        store.write_bytes(data if what == "no database" else (tmp_path / "other.db").read_bytes())
    if what == "unreadable":
        store.chmod(0)
    before = (tmp_path / "other.db").read_bytes()
    under = UNPRIVILEGED if what == "unreadable" else ()
    async with served(home, workspace, under=under) as (daemon, editor):
        told = await editor.wait_for(lambda: degraded(editor), "the person to be told")
        if what == "no database":
            assert list(store.parent.glob("*.corrupt-*")), "the bytes are kept"
        else:
            assert any(str(store) in message for message in told.values()), told
            with pytest.raises(RequestFailed) as raised:
                await editor.create(workspace)
            assert raised.value.reason in ("StoreForeign", "StoreReadOnly")
        assert daemon.process.poll() is None
    assert (tmp_path / "other.db").read_bytes() == before


async def test_a_reader_that_never_ends_is_noticed_by_the_size_of_the_log(home: Path, workspace: Path) -> None:
    """F10: here the size is made, for speed: 64 MiB of nothing that SQLite does not take for frames."""
    scripted(home)
    async with served(home, workspace) as (_, editor):
        session_id = await editor.create(workspace)
        log = places(home).store.with_name(places(home).store.name + "-wal")
        os.truncate(log, 70 * 1024 * 1024)
        await one_run(editor, session_id, "/read a.py")
        told = await editor.wait_for(lambda: degraded(editor).get("log-grows"), "the person to be told")
        assert "70 MiB" in told


@pytest.mark.requirement("R3.2")
async def test_backups_are_made_by_themselves_and_lead_back(home: Path, workspace: Path) -> None:
    scripted(home, daemon={"backup_every_s": 0.2})
    store = places(home).store
    daemon = start_daemon(home)
    async with open_socket(home, [workspace]) as editor:
        session_id = await editor.create(workspace)
        await one_run(editor, session_id)
        seen = await oracle.history(editor, session_id)
        made = len(list((store.parent / "backups").glob("*.db")))
        await until(lambda: len(list((store.parent / "backups").glob("standfast-*.db"))) == 3 and made <= 3, "backups")
        before = max((store.parent / "backups").glob("standfast-*.db"))
        await until(lambda: max((store.parent / "backups").glob("standfast-*.db")) > before, "a backup with the run")
    daemon.end()
    scripted(home)
    _, report = cli(home, "doctor")
    [*_, newest] = sorted(one for one in report["kept"] if "standfast-" in Path(one).name)
    store.write_bytes(b"somebody wrote here " * 1000)
    code, report = cli(home, "doctor", "--restore", newest)
    assert (code, report["ok"], report["restored"]) == (0, True, newest)
    assert Path(report["replaced"]).read_bytes().startswith(b"somebody wrote here")
    async with served(home, workspace) as (_, editor):
        assert await oracle.history(editor, session_id) == seen
        code, refusal = cli(home, "doctor", "--restore", newest)
        assert (code, refusal["error"]["reason"] if "error" in refusal else refusal["reason"]) == (2, "DaemonRunning")
