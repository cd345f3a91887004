"""`standfast sessions`, `show` and `export`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rich.table import Table

from standfast.cli import output
from standfast.cli.client import Client, Json
from standfast.cli.door import Door
from standfast.cli.talk import talk

PAGE = 1000


async def sessions(door: Door, *, archived: bool, as_json: bool) -> int:
    """All sessions, newest first."""
    async with talk(door) as client:
        found = await _pages(client, "standfast/session/list", {}, "sessions")
        if archived:
            found += await _pages(client, "standfast/session/list", {"status": "archived"}, "sessions")
    if as_json:
        output.print_json({"sessions": found})
    elif not found:
        output.out.print("No sessions yet. `standfast run TEXT` begins one in this folder.")
    else:
        output.out.print(_table(found))
    return output.DONE


async def show(door: Door, session_id: str, *, as_json: bool) -> int:
    """The transcript, or with `--json` the session and all its events."""
    async with talk(door) as client:
        if not as_json:
            text = (await client.request("standfast/transcript/get", {"sessionId": session_id}))["text"]
            output.out.print(output.plain(text), markup=False)
            return output.DONE
        attached = await client.request("standfast/session/attach", {"sessionId": session_id, "afterSeq": 0})
        events: list[Json] = attached["events"]
        while len(events) < attached["headSeq"]:
            page = await client.request(
                "standfast/session/events", {"sessionId": session_id, "afterSeq": events[-1]["seq"], "limit": PAGE}
            )
            if not page["events"]:
                break
            events += page["events"]
        output.print_json({"session": attached["session"], "events": events, "recovery": attached.get("recovery")})
    return output.DONE


async def export(door: Door, session_id: str, directory: Path) -> int:
    """session.json, events.jsonl and blobs/ in a folder."""
    async with talk(door) as client:
        await client.request("standfast/session/export", {"sessionId": session_id, "directoryUri": directory.as_uri()})
    output.out.print(f"Written to {directory}.", markup=False)
    return output.DONE


async def _pages(client: Client, method: str, params: Json, key: str) -> list[Json]:
    found: list[Json] = []
    cursor: Any = None
    while True:
        page = await client.request(method, {**params, "limit": PAGE, **({"cursor": cursor} if cursor else {})})
        found += page[key]
        cursor = page.get("nextCursor")
        if not cursor:
            return found


def _table(found: list[Json]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("session", "changed", "last run", "folder", "title"):
        table.add_column(column, no_wrap=True, min_width=24 if column == "session" else None)
    for session in found:
        last_run: Json | None = session.get("lastRun")
        folder = unquote(urlsplit(str(session["workspaceUri"])).path)
        state = session["workspaceState"]
        table.add_row(
            session["sessionId"],
            datetime.fromtimestamp(session["updatedAtMs"] / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M"),
            last_run["status"] if last_run else "",
            output.plain(folder) + ("" if state == "present" else f" ({state})"),
            output.plain(session["title"]),
        )
    return table
