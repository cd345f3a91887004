"""Steps that many editor tests share: a folder, a session in it, a run that is told line by line what to do."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from wire.raw import Json, Raw

_numbers = itertools.count(1)

AMBIGUOUS = "/patch\n*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch"
"""Fits at two lines of TEXT, so that it is refused with candidates."""
TEXT = "one\nx\ntwo\nx\n"


def number() -> str:
    """An id nobody else has."""
    return f"r{next(_numbers)}"


async def session(raw: Raw, folder: Path, *, mode: str = "auto", attach: bool = True) -> str:
    """A new session in the folder, attached."""
    made = await raw.ask(number(), "standfast/session/create", {"workspaceUri": folder.as_uri(), "mode": mode})
    session_id: str = made["session"]["sessionId"]
    if attach:
        await raw.ask(number(), "standfast/session/attach", {"sessionId": session_id})
    return session_id


async def start(raw: Raw, session_id: str, text: str) -> str:
    """Send a message; the run's id."""
    params = {"sessionId": session_id, "text": text, "clientMessageId": number()}
    return (await raw.ask(number(), "standfast/run/start", params))["runId"]


async def event(raw: Raw, type_: str, **fields: Any) -> Json:
    """Wait for a live event."""

    def fits(params: Json) -> bool:
        found = params["event"]
        return found["type"] == type_ and all(found.get(key) == value for key, value in fields.items())

    return (await raw.told("standfast/event", fits))["event"]


async def do(raw: Raw, session_id: str, text: str) -> str:
    """Send a message and wait for the run's end; the run's id."""
    run_id = await start(raw, session_id, text)
    await event(raw, "run_finished", runId=run_id)
    return run_id


async def conflict(raw: Raw, folder: Path) -> tuple[str, str]:
    """A refused patch of a.txt: (session, conflict)."""
    (folder / "a.txt").write_text(TEXT)
    session_id = await session(raw, folder)
    await do(raw, session_id, AMBIGUOUS)
    raised = await event(raw, "conflict_raised")
    return session_id, raised["conflictId"]


async def diagnostics(raw: Raw, uri: str, *, empty: bool = False) -> Json:
    """The next publish for a document that has something to say, or (`empty`) that takes it away."""
    return await raw.told(
        "textDocument/publishDiagnostics", lambda p: p["uri"] == uri and bool(p["diagnostics"]) != empty
    )


def place(line: int, start: int = 0, end: int | None = None) -> Json:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": start if end is None else end},
    }


async def code_actions(
    raw: Raw, uri: str, range_: Json, echoed: list[Json] | None = None, only: list[str] | None = None
) -> list[Json]:
    context: Json = {"diagnostics": echoed or []} | ({"only": only} if only is not None else {})
    params = {"textDocument": {"uri": uri}, "range": range_, "context": context}
    return await raw.ask(number(), "textDocument/codeAction", params)


async def execute(raw: Raw, command: str, *arguments: Any) -> Any:
    return await raw.ask(number(), "workspace/executeCommand", {"command": command, "arguments": list(arguments)})


def open_document(raw: Raw, uri: str, text: str, version: int = 1) -> None:
    raw.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "text", "version": version, "text": text}}
    )


def change_document(raw: Raw, uri: str, text: str, version: int) -> None:
    raw.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
    )
