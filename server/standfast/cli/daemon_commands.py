"""`standfast daemon start|stop|status`."""

from __future__ import annotations

import asyncio

from rich.table import Table

from standfast.cli import output
from standfast.cli.client import Json
from standfast.cli.door import Door
from standfast.cli.talk import talk, talk_over
from standfast.errors import NotAvailable


async def start(door: Door, *, as_json: bool) -> int:
    """Start it where needed; says which one runs."""
    async with talk(door) as client:
        found = await client.request("standfast/daemon/status", {})
    if as_json:
        output.print_json(found)
    else:
        output.out.print(f"The daemon runs (pid {found['pid']}).")
    return output.DONE


async def status(door: Door, *, as_json: bool) -> int:
    """Show the running daemon; exit code 3 without one."""
    found = await _ask(door)
    if as_json:
        output.print_json(found or {"running": False})
    elif found is None:
        output.out.print("No daemon is running. `standfast daemon start` starts one; so does any editor.")
    else:
        _show(found)
    return output.NO_DAEMON if found is None else output.DONE


async def stop(door: Door, *, force: bool, wait: bool) -> int:
    """End it; while a run goes on it is refused, unless `force` (the run is interrupted) or `wait` (it is carried to its end)."""
    found = await _ask(door)
    if found is None:
        output.out.print("No daemon is running.")
        return output.DONE
    if found["runs"] and not force and not wait:
        raise NotAvailable(
            "RunsActive",
            f"{found['runs']} run(s) go on. Nothing was stopped. "
            "Use --wait to end the daemon after them, or --force: they are then interrupted, and can be resumed.",
        )
    await asyncio.to_thread(door.drain if wait and not force else door.stop)
    output.out.print(f"The daemon (pid {found['pid']}) has ended. Sessions are kept.")
    return output.DONE


async def _ask(door: Door) -> Json | None:
    """The status of whatever daemon runs, also of another version's: an upgrade begins with ending that (F14)."""
    sock = await asyncio.to_thread(door.connect)
    if sock is None:
        return None
    async with talk_over(sock, any_version=True) as client:
        return await client.request("standfast/daemon/status", {})


def _show(found: Json) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name in ("pid", "version", "socket", "store", "baseUrl", "clients", "runs", "sandbox"):
        table.add_row(name, str(found.get(name, "")), style=None)
    output.out.print(table)
    for trouble in found.get("degraded", []):
        output.out.print(f"[yellow]![/] {output.plain(trouble['message'])}", markup=True)
