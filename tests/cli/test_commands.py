"""The commands as a person or a script uses them: names, output and exit codes are fixed (design.md "Command line")."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_api import FakeApi, Gate, http_error, reply, tool
from standfast.cli.client import RequestFailed
from support import RunningDaemon, configure, environment, open_editor, open_socket, start_daemon
from support.daemon import places
from support.waiting import until

STANDFAST = (sys.executable, "-P", "-m", "standfast")


def standfast(
    home: Path, *words: str, cwd: Path | None = None, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STANDFAST, *words], env=environment(home, **env), cwd=cwd, input=stdin, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def told(ran: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(ran.stdout)


# -- the daemon -------------------------------------------------------------------------------------------------------


def test_status_without_a_daemon_says_so_and_starts_none(home: Path) -> None:
    ran = standfast(home, "daemon", "status", "--json")
    assert (ran.returncode, told(ran)) == (3, {"running": False})
    assert standfast(home, "daemon", "status").returncode == 3
    assert not places(home).state.exists()


def test_start_returns_when_the_socket_answers_and_stop_when_it_is_gone(home: Path) -> None:
    configure(home, model={"base_url": "http://127.0.0.1:9"})
    first = standfast(home, "daemon", "start", "--json")
    assert first.returncode == 0
    status = told(standfast(home, "daemon", "status", "--json"))
    expected = {
        "running": True,
        "pid": told(first)["pid"],
        "socket": str(places(home).socket),
        "version": status["version"],
        "protocolVersion": 1,
        "store": str(places(home).store),
        "baseUrl": "http://127.0.0.1:9",
        "clients": 0,
        "runs": 0,
        "degraded": [],
    }
    assert {name: status[name] for name in expected} == expected
    assert told(standfast(home, "daemon", "start", "--json"))["pid"] == status["pid"]
    assert standfast(home, "daemon", "stop").returncode == 0
    assert standfast(home, "daemon", "status").returncode == 3
    assert standfast(home, "daemon", "stop").returncode == 0


async def test_stop_during_a_run_needs_force(daemon: RunningDaemon, fake_api: FakeApi, workspace: Path) -> None:
    gate = Gate()
    fake_api.push(reply("thinking").insert(gate, after="text_delta"))
    async with open_socket(daemon.home) as editor:
        session = await editor.create(workspace)
        run = await editor.start(session, "hello")
        await gate.reached()
        refused = await asyncio.to_thread(standfast, daemon.home, "daemon", "stop")
        assert refused.returncode == 2
        assert "--force" in refused.stderr
        assert daemon.process.poll() is None
        forced = await asyncio.to_thread(standfast, daemon.home, "daemon", "stop", "--force")
        assert forced.returncode == 0
        gate.release()
    again = told(await asyncio.to_thread(standfast, daemon.home, "sessions", "--json"))
    assert again["sessions"][0]["lastRun"] == {"runId": run, "status": "interrupted"}


async def test_an_upgrade_waits_for_the_run_that_goes_on_and_the_next_daemon_has_its_end(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    gate = Gate()
    fake_api.push(reply("One ", "two.").insert(gate, after="text_delta"))
    async with open_socket(daemon.home) as editor:
        session = await editor.create(workspace)
        run = await editor.start(session, "Count")
        await gate.reached()
        async with open_socket(daemon.home, hello=False) as newer:
            with pytest.raises(RequestFailed) as refused:
                await newer.initialize(plain=True, experimental={"standfast": {"protocolVersion": 2}})
        assert refused.value.reason == "VersionMismatch"
        assert "daemon stop --wait" in refused.value.message
        stopping = asyncio.create_task(asyncio.to_thread(standfast, daemon.home, "daemon", "stop", "--wait"))
        await until(lambda: "draining" in places(daemon.home).log.read_text(), "the daemon to be asked")
        status = told(await asyncio.to_thread(standfast, daemon.home, "daemon", "status", "--json"))
        assert (status["pid"], status["runs"]) == (daemon.pid, 1), "it serves as ever"
        gate.release()
        assert (await editor.run_end(run))["status"] == "succeeded"
        seen = editor.events(session)
        assert (await stopping).returncode == 0
        assert await daemon.exited() == 0
    async with open_editor(daemon.home) as editor:
        assert (await editor.request("standfast/daemon/status", {}))["pid"] != daemon.pid
        attached = await editor.attach(session, afterSeq=seen[-1]["seq"], afterHash=seen[-1]["hash"])
        assert attached["events"] == [] and "damage" not in attached and "recovery" not in attached
        assert attached["session"]["lastRun"] == {"runId": run, "status": "succeeded"}


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_run_from_the_command_line_leaves_a_session_to_list_show_export_and_import(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path, tmp_path: Path
) -> None:
    fake_api.push(reply("I look.", tools=[tool("read_file", path="a.py")]), reply("It says x = 1."))
    ran = standfast(daemon.home, "run", "--mode", "auto", "what", "is in a.py?", cwd=workspace)
    assert ran.returncode == 0, ran.stderr
    assert "It says x = 1." in ran.stdout
    [session] = told(standfast(daemon.home, "sessions", "--json"))["sessions"]
    assert session["workspaceUri"] == workspace.as_uri()
    assert session["sessionId"] in ran.stderr
    assert session["sessionId"] in standfast(daemon.home, "sessions").stdout.replace("\n", "")

    whole = told(standfast(daemon.home, "show", session["sessionId"], "--json"))
    assert [event["seq"] for event in whole["events"]] == list(range(1, len(whole["events"]) + 1))
    assert "what is in a.py?" in standfast(daemon.home, "show", session["sessionId"]).stdout

    out = tmp_path / "out"
    assert standfast(daemon.home, "export", session["sessionId"], str(out)).returncode == 0
    assert sorted(path.name for path in out.iterdir()) == ["blobs", "events.jsonl", "session.json"]
    again = standfast(daemon.home, "import", str(out), "--json")
    assert told(again) == {"sessionId": session["sessionId"]}
    assert len(told(standfast(daemon.home, "sessions", "--json"))["sessions"]) == 1


def test_a_session_is_continued_with_its_whole_history(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    fake_api.push(reply("first answer"), reply("second answer"))
    assert standfast(daemon.home, "run", "--mode", "plan", "one", cwd=workspace).returncode == 0
    session = told(standfast(daemon.home, "sessions", "--json"))["sessions"][0]["sessionId"]
    ran = standfast(daemon.home, "run", "--session", session, "two", cwd=workspace)
    assert "second answer" in ran.stdout
    assert "first answer" in json.dumps(fake_api.requests[1].body)
    assert not fake_api.refused


async def test_whoever_loses_the_daemon_during_a_run_is_told_how_to_go_on_and_nothing_is_done_twice(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    fake_api.push(reply(tools=[tool("run_command", command="echo x >> out.txt; sleep 2")]), reply("It ran once."))
    running = asyncio.create_task(
        asyncio.to_thread(standfast, daemon.home, "run", "--mode", "auto", "run it", cwd=workspace)
    )
    await until((workspace / "out.txt").exists, "the command to run")
    daemon.kill()
    ran = await running
    assert ran.returncode == 2
    [named] = [word for word in ran.stderr.replace("\n", " ").split() if word.startswith("ses_")][-1:]
    assert f"standfast run --session {named} TEXT" in " ".join(ran.stderr.split())
    key = {"ANTHROPIC_API_KEY": fake_api.key}
    again = await asyncio.to_thread(standfast, daemon.home, "run", "--session", named, "go on", cwd=workspace, **key)
    assert again.returncode == 0, again.stderr
    assert "It ran once." in again.stdout
    assert "run_command: " in again.stderr, "what became of the call is said first"
    assert (workspace / "out.txt").read_text() == "x\n"
    assert "echo x" in fake_api.requests[-1].whole_text and not fake_api.refused


def test_a_run_that_fails_says_why_and_ends_with_1(daemon: RunningDaemon, fake_api: FakeApi, workspace: Path) -> None:
    fake_api.push(http_error("invalid_request_error", "no such model"))
    ran = standfast(daemon.home, "run", "--mode", "auto", "hello", cwd=workspace)
    assert ran.returncode == 1
    assert "no such model" in ran.stderr


def test_in_ask_mode_without_a_terminal_nothing_is_sent(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    for words in (["change a.py"], ["--mode", "ask", "change a.py"]):
        ran = standfast(daemon.home, "run", *words, cwd=workspace)
        assert ran.returncode == 2
        assert "terminal" in ran.stderr
    assert fake_api.requests == []
    assert told(standfast(daemon.home, "sessions", "--json")) == {"sessions": []}, "no session is made for nothing"


def test_in_ask_mode_the_whole_change_is_shown_before_the_question(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    fake_api.push(
        reply("", tools=[tool("edit_file", path="a.py", old_text="x = 1", new_text="x = 2")]), reply("Changed.")
    )
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*STANDFAST, "run", "change a.py"], env=environment(daemon.home, TERM="dumb", COLUMNS="100"), cwd=workspace,
        stdin=terminal, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    seen = ""
    while "Allow?" not in seen:
        seen += os.read(controller, 4096).decode()
    assert "+x = 2" in seen
    assert (workspace / "a.py").read_text() == "x = 1\n"
    os.write(controller, b"y\n")
    assert process.wait(60) == 0
    os.close(controller)
    assert (workspace / "a.py").read_text() == "x = 2\n"


async def test_events_follow_prints_each_event_once_as_it_is_stored(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    fake_api.push(reply("hello"))
    async with open_socket(daemon.home) as editor:
        session = await editor.create(workspace)
        process = await asyncio.create_subprocess_exec(
            *STANDFAST, "events", "--follow", "--json", env=environment(daemon.home), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert json.loads(await process.stdout.readline())["type"] == "session_created"
        await editor.start(session, "hi")
        seqs = [1]
        while True:
            event = json.loads(await process.stdout.readline())
            seqs.append(event["seq"])
            if event["type"] == "run_finished":
                break
        assert seqs == list(range(1, len(seqs) + 1))
        fake_api.push(reply("hello again"))
        later = await editor.create(workspace)
        await editor.start(later, "hi")
        seqs.clear()
        while True:
            event = json.loads(await process.stdout.readline())
            assert event["sessionId"] == later, "a session that begins while it follows"
            seqs.append(event["seq"])
            if event["type"] == "run_finished":
                break
        assert seqs == list(range(1, len(seqs) + 1))
        process.terminate()
        await process.wait()


# -- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("ATK-38")
def test_login_stores_the_key_for_its_user_only_and_shows_it_nowhere(
    home: Path, fake_api: FakeApi, workspace: Path
) -> None:
    configure(home, model={"base_url": fake_api.url})
    fake_api.push(reply("hello"))
    ran = standfast(home, "login", stdin=fake_api.key + "\n")
    assert ran.returncode == 0, ran.stderr
    assert places(home).credentials.stat().st_mode & 0o777 == 0o600
    talked = standfast(home, "run", "--mode", "plan", "hi", cwd=workspace)
    assert talked.returncode == 0, talked.stderr
    for text in (
        ran.stdout,
        ran.stderr,
        talked.stdout,
        talked.stderr,
        *(p.read_text() for p in places(home).log.parent.iterdir()),
    ):
        assert fake_api.key not in text
    assert standfast(home, "login", "--remove").returncode == 0
    assert standfast(home, "run", "--mode", "plan", "hi", cwd=workspace).returncode == 1


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("show", "ses_nothing"),
        ("export", "ses_nothing", "out"),
        ("import", "/nowhere/at/all"),
        ("run", "--session", "ses_nothing", "hi"),
        ("run", "--mode", "sideways", "hi"),
        ("nonsense",),
        ("run",),
    ],
    ids=lambda words: "-".join(words)[:24],
)
def test_an_error_is_a_sentence_and_exit_code_2(
    shared_daemon: RunningDaemon, workspace: Path, words: tuple[str, ...]
) -> None:
    ran = standfast(shared_daemon.home, *words, cwd=workspace)
    assert ran.returncode == 2, (ran.stdout, ran.stderr)
    assert ran.stderr.strip()
    assert "Traceback" not in ran.stderr


def test_an_error_is_json_too_where_json_was_asked_for(shared_daemon: RunningDaemon) -> None:
    ran = standfast(shared_daemon.home, "show", "ses_nothing", "--json")
    assert told(ran)["error"]["reason"] == "SessionNotFound"


def test_a_corrupt_configuration_names_file_and_line_and_nothing_starts(home: Path) -> None:
    (home / "config.toml").write_text('[model]\nprovider = "anthropic\n')
    ran = standfast(home, "sessions")
    assert ran.returncode == 2
    assert "config.toml" in ran.stderr
    assert "line 2" in ran.stderr
    assert standfast(home, "daemon", "status").returncode == 3


@pytest.mark.scenario("d12")
async def test_a_store_that_cannot_be_read_does_not_keep_the_daemon_from_saying_so(home: Path, workspace: Path) -> None:
    state = places(home).state
    state.mkdir(mode=0o700)
    (state / "standfast.db").mkdir()  # unreadable for every user, root too
    ran = standfast(home, "sessions")
    assert ran.returncode == 2
    assert "standfast.db" in ran.stderr
    async with open_socket(home, [workspace]) as editor:
        status = await editor.request("standfast/daemon/status", {})
        assert any("standfast.db" in one["message"] for one in status["degraded"])
    async with open_socket(home, [workspace], plain=True) as editor:
        shown = await editor.wait_for(lambda: editor.told("window/showMessage"), "one message")
        assert "standfast.db" in shown[0]["message"]
    for _ in range(5):
        assert told(standfast(home, "daemon", "start", "--json"))["pid"] == status["pid"]


# -- what a project may not do, and what others may not read ----------------------------------------------------------


@pytest.mark.scenario("ATK-24")
@pytest.mark.scenario("ATK-25")
def test_nothing_in_a_project_moves_the_state_or_sends_a_request_elsewhere(
    home: Path, fake_api: FakeApi, workspace: Path
) -> None:
    evil = "http://127.0.0.1:1"
    (workspace / ".env").write_text(f"ANTHROPIC_BASE_URL={evil}\nSTANDFAST_HOME=elsewhere\nXDG_STATE_HOME=elsewhere\n")
    for place in ("config.toml", ".standfast/config.toml", ".config/standfast/config.toml"):
        (workspace / place).parent.mkdir(parents=True, exist_ok=True)
        (workspace / place).write_text(f'[model]\nbase_url = "{evil}"\n')
    (workspace / "sitecustomize.py").write_text("raise SystemExit('started from the project')\n")
    configure(home, model={"base_url": fake_api.url})
    fake_api.push(reply("hello"))
    ran = standfast(home, "run", "--mode", "plan", "hi", cwd=workspace, ANTHROPIC_API_KEY=fake_api.key)
    assert ran.returncode == 0, ran.stderr
    status = told(standfast(home, "daemon", "status", "--json", cwd=workspace))
    assert (status["baseUrl"], status["store"]) == (fake_api.url, str(places(home).store))
    assert not (workspace / "elsewhere").exists()


@pytest.mark.scenario("e14")
@pytest.mark.scenario("ATK-38")
def test_what_a_session_leaves_is_private_and_loose_modes_are_tightened_at_the_next_start(
    home: Path, fake_api: FakeApi, workspace: Path
) -> None:
    configure(home, model={"base_url": fake_api.url})
    fake_api.push(reply("", tools=[tool("run_command", command="echo hello")]), reply("done"))
    daemon = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key}, umask=0)
    assert standfast(home, "run", "--mode", "auto", "hi", cwd=workspace).returncode == 0
    assert loose(home) == []
    daemon.kill()
    for name in ("standfast.db", "log/daemon.log"):
        (places(home).state / name).chmod(0o644)
    places(home).state.chmod(0o755)
    daemon = start_daemon(home)
    assert loose(home) == []
    assert daemon.end() == 0


def loose(home: Path) -> list[tuple[str, str]]:
    """What others could read beneath state and run."""
    found = [home / "state", home / "run", *home.glob("state/**/*"), *home.glob("run/**/*")]
    return [
        (str(path.relative_to(home)), oct(path.lstat().st_mode))
        for path in found
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_the_doctor_works_without_a_daemon_and_rebuild_finds_no_difference(
    daemon: RunningDaemon, fake_api: FakeApi, workspace: Path
) -> None:
    fake_api.push(reply("hello"))
    assert standfast(daemon.home, "run", "--mode", "plan", "hi", cwd=workspace).returncode == 0
    assert standfast(daemon.home, "doctor").returncode == 0
    busy = standfast(daemon.home, "doctor", "--rebuild")
    assert busy.returncode == 2
    assert "daemon stop" in busy.stderr
    assert daemon.end() == 0
    healthy = standfast(daemon.home, "doctor", "--json")
    assert healthy.returncode == 0, healthy.stdout
    rebuilt = standfast(daemon.home, "doctor", "--rebuild", "--json")
    assert rebuilt.returncode == 0, rebuilt.stdout
    assert standfast(daemon.home, "daemon", "status").returncode == 3


# -- patches ----------------------------------------------------------------------------------------------------------


def test_apply_patch_needs_no_daemon_and_starts_none(home: Path, workspace: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n"
    ran = standfast(home, "apply-patch", "--workspace", str(workspace), "--json", stdin=patch)
    assert ran.returncode == 0, ran.stderr
    assert told(ran) == {"outcome": "applied", "files": [{"path": "a.py", "kind": "update"}]}
    assert (workspace / "a.py").read_text() == "x = 2\n"
    again = standfast(home, "apply-patch", "--workspace", str(workspace), "--json", stdin=patch)
    assert (again.returncode, told(again)["outcome"]) == (1, "conflict")
    none = standfast(home, "apply-patch", "--workspace", str(workspace), "--json", stdin="no patch\n")
    assert (none.returncode, told(none)["outcome"]) == (2, "error")
    assert sorted(told(none)["error"]) == ["message", "reason"], "no path where no file is to blame"
    assert not places(home).state.exists()
