"""`standfast run`: send a message, follow the run, ask where the session's mode asks."""

from __future__ import annotations

import asyncio
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rich.syntax import Syntax
from rich.text import Text

from standfast.cli import output
from standfast.cli.client import Client, Json
from standfast.cli.door import Door
from standfast.cli.talk import talk
from standfast.cli.wording import call_words
from standfast.errors import StandfastError

ENDED = frozenset({"succeeded", "failed", "cancelled", "interrupted"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the person asked for on the command line."""

    text: str
    session_id: str | None
    mode: str | None
    workspace: Path


async def run(door: Door, wanted: Wanted) -> int:
    """Exit code 0 if the run succeeded, 1 if it failed or was cancelled."""
    if wanted.mode is not None or wanted.session_id is None:
        _require_terminal(wanted.mode or "ask")  # before a session is made or changed for nothing
    async with talk(door) as client:
        session = await _session(client, wanted)
        _require_terminal(session["mode"])
        follower = Follower(session["sessionId"])
        client.listen(follower.hear)
        client.answer("standfast/permission/request", follower.ask)
        attached = await client.request("standfast/session/attach", {"sessionId": session["sessionId"], "limit": 1})
        _tell_recovery(attached)
        started = await client.request(
            "standfast/run/start",
            {"sessionId": session["sessionId"], "text": wanted.text, "clientMessageId": secrets.token_hex(8)},
        )
        output.err.print(f"[dim]session {session['sessionId']}[/]")
        if started["status"] == "queued":
            output.err.print("[dim]Another run goes on; this message waits its turn.[/]")
        status = await _follow(client, follower, started["runId"])
    return output.DONE if status == "succeeded" else output.FAILED


async def _session(client: Client, wanted: Wanted) -> Json:
    if wanted.session_id is None:
        params: Json = {"workspaceUri": wanted.workspace.as_uri()}
        if wanted.mode:
            params["mode"] = wanted.mode
        return (await client.request("standfast/session/create", params))["session"]
    params = {"sessionId": wanted.session_id, **({"mode": wanted.mode} if wanted.mode else {})}
    return (await client.request("standfast/session/update", params))["session"]


async def _follow(client: Client, follower: Follower, run_id: str) -> str:
    """Until the run has ended. Ctrl-C cancels the run, not only the watching."""
    ended = asyncio.ensure_future(follower.end_of(run_id))
    gone = asyncio.ensure_future(client.lost.wait())
    try:
        await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            raise _lost(follower.session_id)
        return ended.result()
    except asyncio.CancelledError:
        await client.request("standfast/run/cancel", {"runId": run_id})
        raise
    finally:
        ended.cancel()
        gone.cancel()


def _lost(session_id: str) -> StandfastError:
    """The same command once more would begin the work once more: say how to go on with this instead."""
    return StandfastError(
        "DaemonLost",
        "The daemon went away during the run. Everything up to the last event is stored, and nothing goes on by itself. "
        f"`standfast run --session {session_id} TEXT` says first what became of the open calls, then goes on.",
    )


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _require_terminal(mode: str) -> None:
    """Raises NeedsTerminal where the mode asks and nobody can be asked."""
    if mode == "ask" and not _terminal():
        raise StandfastError(
            "NeedsTerminal",
            "In ask mode each write and command is asked for, and there is no terminal to ask on. Nothing was sent. "
            "Run it in a terminal, or choose --mode plan, edit or auto.",
        )


def _tell_recovery(attached: Json) -> None:
    recovery: Json | None = attached.get("recovery")
    calls: list[Json] = recovery["calls"] if recovery else []
    for call in calls:
        output.err.print(
            Text.assemble(("! ", "yellow"), f"{call['tool']}: {call['verdict']}. ", output.plain(call["evidence"]))
        )


@dataclass(slots=True)
class Follower:
    """Prints a run as it happens and asks the person."""

    session_id: str
    _ended: dict[str, str] = field(default_factory=dict[str, str])
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _printed: dict[int, int] = field(default_factory=dict[int, int])
    """attempt → UTF-16 units of its text that are on the screen."""
    _questions: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def end_of(self, run_id: str) -> str:
        while run_id not in self._ended:
            self._news.clear()
            await self._news.wait()
        return self._ended[run_id]

    def hear(self, method: str, params: Json) -> None:
        if method == "standfast/delta" and "attempt" in params:
            self._stream(params["attempt"], params["offset"], params["text"])
        elif method == "standfast/event":
            self._event(params["event"])

    def _event(self, event: Json) -> None:
        match event["type"]:
            case "assistant_chunk":
                self._stream(event["attempt"], event["offset"], event["text"])
            case "assistant_message":
                self._printed.clear()
                output.out.print()
            case "tool_call":
                output.err.print(Text.assemble(("• ", "cyan"), output.plain(call_words(event["tool"], event["args"]))))
            case "tool_result":
                style = "green" if event["status"] == "ok" else "red"
                code = event.get("exitCode")
                word = f"exit {code}" if code else event["status"]
                head = output.plain(event["content"]).strip().splitlines()[:1]
                output.err.print(Text.assemble(("  ", ""), (word, style), " ", *head))
            case "run_finished":
                self._finish(event)
            case _:
                pass

    def _finish(self, event: Json) -> None:
        error = event.get("error")
        if error:
            output.err.print(Text.assemble((f"{event['status']}: ", "bold red"), output.plain(error["message"])))
        self._ended[event["runId"]] = event["status"]
        self._news.set()

    def _stream(self, attempt: int, offset: int, text: str) -> None:
        """Print what is not on the screen yet: the same text comes as a delta and again in an event."""
        shown = self._printed.get(attempt, 0)
        units = text.encode("utf-16-le", "surrogatepass")
        fresh = units[max(0, shown - offset) * 2 :]
        if not fresh:
            return
        output.out.print(output.plain(fresh.decode("utf-16-le", "replace")), end="", markup=False)
        self._printed[attempt] = max(shown, offset + len(units) // 2)

    async def ask(self, permission: Json) -> Json:
        """Show what would be done, whole, then ask. Without a terminal the answer is no."""
        async with self._questions:
            if not _terminal():
                output.err.print(
                    Text.assemble(("denied ", "red"), output.plain(permission["summary"]), ": no terminal to ask on")
                )
                return {"decision": "deny", "digest": permission["digest"]}
            _show(permission)
            said = await asyncio.to_thread(input, "Allow? [y]es, [n]o, [a]lways in this session: ")
            decision = {"y": "allow", "a": "allowSession"}.get(said.strip().lower()[:1], "deny")
            return {"decision": decision, "digest": permission["digest"]}


def _show(permission: Json) -> None:
    output.err.print(Text.assemble(("? ", "bold yellow"), output.plain(permission["summary"])))
    for risk in permission.get("risks", []):
        output.err.print(Text.assemble(("  ! ", "bold red"), output.plain(risk)))
    for changed in permission["files"]:
        diff = output.plain(changed.get("diff") or f"{changed['kind']} {changed['uri']}")
        output.err.print(Syntax(diff, "diff", background_color="default", word_wrap=True))
