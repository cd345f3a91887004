"""The daemon's key and the person's tokens: in no tool's environment, no log, no store, no error; what is shown is safe to paste (I12)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_api import FakeApi, reply, tool
from support import configure, open_editor, start_daemon
from support.daemon import places

CANARY = "sk-ant-CANARY-7c2f41d09b"
TOKEN = "ghp_CANARY_5a5a5a"


def files_with(word: str, *folders: Path) -> list[str]:
    """Every file beneath the folders that holds a word, databases and their write-ahead logs too."""

    def all_files() -> Iterator[Path]:
        for folder in folders:
            yield from (path for path in folder.rglob("*") if path.is_file())

    return [path.name for path in all_files() if word.encode() in path.read_bytes()]


@pytest.mark.scenario("e12")
@pytest.mark.scenario("ATK-37")
@pytest.mark.scenario("ATK-38")
@pytest.mark.requirement("I12")
async def test_the_key_is_nowhere_but_in_the_request_for_the_model(home: Path, workspace: Path, tmp_path: Path) -> None:
    with FakeApi(key=CANARY) as api:
        configure(home, model={"base_url": api.url}, sandbox={"level": "none", "at_most": "none"})
        running = start_daemon(home, {"ANTHROPIC_API_KEY": CANARY, "GITHUB_TOKEN": TOKEN, "http_proxy": ""})
        commands = (
            "printenv; cat /proc/self/environ",
            "tr '\\0' '\\n' < /proc/$PPID/environ",
            f"cat /proc/{running.pid}/environ; cat /proc/{running.pid}/mem; grep -a CANARY /proc/{running.pid}/maps",
        )
        try:
            async with open_editor(home, [workspace]) as editor:
                session_id = await editor.create(workspace, mode="auto")
                api.push(reply("", tools=[tool("run_command", command=one) for one in commands]), reply("Done."))
                end = await editor.run_end(await editor.start(session_id, "go"))
                assert end["status"] == "succeeded"
                assert len(editor.events(session_id, "tool_result")) == len(commands)
                await editor.request(
                    "standfast/session/export", {"sessionId": session_id, "directoryUri": (tmp_path / "out").as_uri()}
                )
                heard = json.dumps(editor.heard)
                assert CANARY not in heard
                assert TOKEN not in heard
            assert files_with(CANARY, home, workspace, tmp_path / "out") == []
            assert files_with(TOKEN, home, workspace, tmp_path / "out") == []
            assert api.requests, "the key was of use"
            assert all(CANARY not in json.dumps(request.body) for request in api.requests)
        finally:
            running.end()
        assert files_with(CANARY, home) == []


@pytest.mark.scenario("e12")
async def test_a_file_with_secrets_is_asked_for_in_every_mode_and_its_content_is_in_no_log(
    home: Path, workspace: Path, fake_api: FakeApi
) -> None:
    (workspace / ".env").write_text(f"API_KEY={CANARY}\n")
    configure(home, model={"base_url": fake_api.url})
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    try:
        async with open_editor(home, [workspace]) as editor:
            editor.decide("deny")
            for mode in ("plan", "ask", "edit", "auto"):
                session_id = await editor.create(workspace, mode=mode)
                fake_api.push(reply("", tools=[tool("read_file", path=".env")]), reply("Done."))
                await editor.run_end(await editor.start(session_id, "go"))
            assert len(editor.asked) == 4
            assert all(one["risks"] for one in editor.asked)
            assert files_with(CANARY, home) == []
            session_id = await editor.create(workspace, mode="ask")
            editor.decide("allow")
            fake_api.push(reply("", tools=[tool("run_command", command="cat .env")]), reply("Done."))
            await editor.run_end(await editor.start(session_id, "go"))
            assert editor.asked[-1]["summary"] == "Run: cat .env"
        assert files_with(CANARY, places(home).log.parent) == []
        assert CANARY not in (home / "daemon.err").read_text()
    finally:
        running.end()


@pytest.mark.scenario("ATK-43")
async def test_the_transcript_is_safe_to_paste(home: Path, workspace: Path, fake_api: FakeApi) -> None:
    evil = "\x1b]52;c;Y3VybA==\x07\x1b[2J\u202egpj.exe"
    configure(home, model={"base_url": fake_api.url}, sandbox={"level": "none"})
    running = start_daemon(home, {"ANTHROPIC_API_KEY": fake_api.key})
    try:
        async with open_editor(home, [workspace]) as editor:
            session_id = await editor.create(workspace, mode="auto")
            (workspace / "evil.txt").write_text(evil)
            fake_api.push(reply(f"See {evil}", tools=[tool("run_command", command="cat evil.txt")]), reply("Done."))
            await editor.run_end(await editor.start(session_id, "go"))
            text = (await editor.request("standfast/transcript/get", {"sessionId": session_id}))["text"]
            shown = text + places(home).log.read_text()
            assert not {character for character in shown if character in "\x1b\x07\u202e"}
            assert "202e" in text.lower(), "what was there is spelt out"
    finally:
        running.end()


@pytest.mark.scenario("ATK-38")
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc")
async def test_the_daemon_dumps_no_core_unless_it_is_debugged(home: Path) -> None:
    for debug, limit in (({}, "0"), ({"STANDFAST_DEBUG": "1"}, None)):
        running = start_daemon(home, debug)
        try:
            limits = Path(f"/proc/{running.pid}/limits").read_text()
            core = next(line.split()[4] for line in limits.splitlines() if line.startswith("Max core"))
            assert limit is None or core == limit
            owner = Path(f"/proc/{running.pid}/environ").stat().st_uid
            assert owner == (os.geteuid() if debug else 0), "what is not dumpable belongs to root"
        finally:
            running.end()
