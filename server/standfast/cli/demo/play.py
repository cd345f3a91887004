"""The demo's story, from top to bottom: ask, kill in the write, come back, settle, kill in the command, come back, finish."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from standfast.cli import output
from standfast.cli.client import Json
from standfast.cli.demo.editor import Editor, open_editor
from standfast.cli.demo.facts import Facts, Kill
from standfast.cli.demo.screen import Screen
from standfast.cli.demo.stage import Moments, Stage, build, choose, git, truths
from standfast.cli.door import Door
from standfast.errors import StandfastError
from standfast.model.demo_story import REQUEST

ACTS = frozenset({"model_request", "tool_started", "assistant_chunk", "assistant_message"})
"""Events that say that something was sent to the model or done."""


async def play(door: Door, *, seed: int, as_json: bool, keep: bool) -> int:
    """Play it; exit code 0 if everything came out as it should. Cleans up whatever happens."""
    screen = Screen(silent=as_json)
    screen.title(seed)
    folder = Path(tempfile.mkdtemp(prefix="standfast-demo-"))
    stage = Stage(folder)
    facts = Facts(seed)
    try:
        stage = await build(folder)
        await Story(stage, screen, facts, choose(seed)).tell()
    finally:
        await asyncio.to_thread(door.elsewhere(stage.environment()).stop)
        await _clean(folder, keep=keep)
    screen.end(facts)
    if as_json:
        output.print_json(facts.json())
    return output.DONE if facts.ok else output.FAILED


class Story:
    """One performance. Each method is a chapter."""

    def __init__(self, stage: Stage, screen: Screen, facts: Facts, moments: Moments) -> None:
        self.stage = stage
        self.screen = screen
        self.facts = facts
        self.moments = moments
        self.session_id = ""
        self.last_seq = 0
        self.dead: int = 0
        """The daemon that was killed last."""

    async def tell(self) -> None:
        await self.ask_and_die_in_the_write()
        await self.come_back_to_the_write()
        await self.come_back_to_the_command()
        self.facts.final_diff = await git(self.stage, "diff", "--no-color")
        self.facts.files = truths(self.stage)

    async def ask_and_die_in_the_write(self) -> None:
        """Chapter 1. The daemon has a failpoint and kills itself, with SIGKILL, where the seed says."""
        self.screen.chapter("An editor opens the project and asks for a fix")
        async with self._editor(self.moments.write) as editor:
            pid = await editor.pid()
            self.screen.line("editor", f"standfast lsp found no daemon and started one: pid {pid}")
            made = await editor.client.request(
                "standfast/session/create",
                {"workspaceUri": self.stage.project.as_uri(), "title": "Fix the cart", "mode": "ask"},
            )
            self.session_id = self.facts.session_id = made["session"]["sessionId"]
            await editor.client.request("standfast/session/attach", {"sessionId": self.session_id})
            await editor.client.request(
                "standfast/run/start", {"sessionId": self.session_id, "text": REQUEST, "clientMessageId": "demo-1"}
            )
            await editor.lost()
        kill = Kill("write", self.moments.write, pid, files=truths(self.stage))
        self.facts.kills.append(kill)
        self.dead = pid
        self.screen.kill(kill, self.moments.write_words)

    async def come_back_to_the_write(self) -> None:
        """Chapters 2 and 3: see what became of the write, settle it, resume; then the tests run and the daemon dies again."""
        self.screen.chapter("The editor comes back: what became of the write?")
        async with self._editor() as editor:
            kill = self.facts.kills[-1]
            attached = await self._reattach(editor, kill, "apply_patch")
            self.screen.verdict(kill)
            await self._settle(editor, kill)
            self.screen.chapter("The run goes on")
            await self._resume(editor, attached)
            started = await editor.until(lambda: self._command_started(editor), "the start of the tests")
            await asyncio.sleep(self.moments.command_s)
            await self._kill_in_the_command(editor, started)

    async def come_back_to_the_command(self) -> None:
        """Chapters 4 and 5: the command lived on without its daemon; its real result is taken, then the run ends."""
        self.screen.chapter("The editor comes back: what became of the command?")
        async with self._editor() as editor:
            kill = self.facts.kills[-1]
            attached = await self._reattach(editor, kill, "run_command")
            self.screen.verdict(kill)
            kill.actions = [action["title"] for action in await self._actions(editor)]
            self.screen.attention(kill)
            await self._wait_for_the_command(editor, kill)
            self.screen.chapter("The run goes on to its end")
            run_id = await self._resume(editor, attached)
            finished = await editor.until(lambda: editor.event("run_finished", runId=run_id), "the end of the run")
            self.facts.run_status = finished["status"]
            page = await editor.client.request(
                "standfast/session/events", {"sessionId": self.session_id, "limit": 1000}
            )
            self.facts.tests_passed = any(
                event["type"] == "tool_result" and event.get("exitCode") == 0 for event in page["events"]
            )
            await editor.client.leave()

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _editor(self, failpoints: str = "") -> AbstractAsyncContextManager[Editor]:
        return open_editor(self.stage, self._on_event, self.screen.permission, failpoints)

    def _on_event(self, event: Json) -> None:
        self.last_seq = max(self.last_seq, event["seq"])
        self.screen.event(event)

    async def _reattach(self, editor: Editor, kill: Kill, tool: str) -> Json:
        kill.pid_after = await editor.pid()
        self.screen.line("editor", f"daemon {kill.pid_before} is dead; a new one answers: pid {kill.pid_after}")
        attached = await editor.client.request(
            "standfast/session/attach", {"sessionId": self.session_id, "afterSeq": self.last_seq}
        )
        missed: list[Json] = attached["events"]
        self.screen.line("editor", f"attached after event {self.last_seq}: {len(missed)} events were missed")
        seen = self.last_seq
        for event in missed:
            self._on_event(event)
        crash = next((e["seq"] for e in missed if e["type"] == "run_finished"), seen)
        if any(event["type"] in ACTS and event["seq"] > crash for event in missed):
            self.facts.quiet_after_crash = False
        calls: list[Json] = attached["recovery"]["calls"]
        kill.call = next(call for call in calls if call["tool"] == tool)
        kill.verdicts.append(kill.call["verdict"])
        uris = [(self.stage.project / file.path).as_uri() for file in kill.files]
        await editor.until(lambda: all(editor.diagnostics.get(uri) for uri in uris), "diagnostics on the files")
        kill.diagnostics = [
            _place(self.stage, uri, one) for uri, found in sorted(editor.diagnostics.items()) for one in found
        ]
        return attached

    async def _settle(self, editor: Editor, kill: Kill) -> None:
        """The person chooses among the code actions: a half-done write is completed or undone; else nothing is open."""
        offered = await self._actions(editor)
        kill.actions = [action["title"] for action in offered]
        chosen = next((action for action in offered if _action_of(action) == self.moments.choice), None)
        if kill.verdict == "partial" and chosen is not None:
            kill.choice = chosen["title"]
            self.screen.attention(kill)
            self.screen.line("you", f"chose: {kill.choice}")
            await editor.choose(chosen)
            self.screen.line("daemon", "now: " + ", ".join(f"{file.path} {file.state}" for file in truths(self.stage)))
        else:
            self.screen.attention(kill)

    async def _actions(self, editor: Editor) -> list[Json]:
        """The code actions on the first place that has a diagnostic."""
        uri = next((uri for uri, found in sorted(editor.diagnostics.items()) if found), None)
        return await editor.actions(uri) if uri else []

    async def _resume(self, editor: Editor, attached: Json) -> str:
        """By the code action where there is one, as a person does; returns the new run's id."""
        run_id = attached["recovery"]["interruptedRun"]["runId"]
        if any(event["type"] in ACTS for event in editor.events):
            self.facts.quiet_after_crash = False
        self.screen.line("you", "chose: resume the run")
        resumed = await editor.client.request(
            "workspace/executeCommand", {"command": "standfast.run.resume", "arguments": [{"runId": run_id}]}
        )
        return resumed["runId"]

    @staticmethod
    def _command_started(editor: Editor) -> Json | None:
        call = editor.event("tool_call", tool="run_command")
        return editor.event("tool_started", callId=call["callId"]) if call else None

    async def _kill_in_the_command(self, editor: Editor, started: Json) -> None:
        pid = await editor.pid()
        if editor.event("tool_result", callId=started["callId"]):
            raise StandfastError(
                "DemoTooLate", "The tests ended before the kill; this machine is very fast. Try again."
            )
        os.kill(pid, signal.SIGKILL)
        await editor.lost()
        kill = Kill("command", f"{self.moments.command_s} s after its start", pid)
        self.facts.kills.append(kill)
        self.screen.kill(kill, f"the tests have been running for {self.moments.command_s} s")

    async def _wait_for_the_command(self, editor: Editor, kill: Kill) -> None:
        call_id = kill.call["callId"]
        if kill.verdict == "running":
            self.screen.line("daemon", "the tests are still running: taken over, not started again")
            await editor.until(lambda: editor.event("tool_result", callId=call_id), "the end of the tests")
            kill.verdicts.append("finished")


def _place(stage: Stage, uri: str, diagnostic: Json) -> Json:
    path = Path(unquote(urlsplit(uri).path))
    inside = urlsplit(uri).scheme == "file" and path.is_relative_to(stage.project)
    return {
        "file": str(path.relative_to(stage.project)) if inside else uri,
        "line": diagnostic["range"]["start"]["line"] + 1,
        "code": diagnostic.get("code", ""),
        "message": diagnostic["message"],
    }


def _action_of(action: Json) -> str | None:
    """What of recovery/resolve a code action would do."""
    arguments: list[Json] = action["command"]["arguments"]
    return arguments[0].get("action")


async def _clean(folder: Path, *, keep: bool) -> None:
    import shutil

    if keep:
        output.err.print(f"Kept: {folder}")
    else:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
