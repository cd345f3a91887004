"""`standfast doctor`: check the store by itself, with or without a daemon; `--rebuild` makes its tables anew from the log.

The way back to a backup: `standfast daemon stop`, then `standfast doctor` (which lists the backups), then
`standfast doctor --restore BACKUP`. The store that was there is kept beside it, whole.
"""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from standfast.cli import output
from standfast.cli.client import Json
from standfast.cli.door import Door
from standfast.clock import SystemClock
from standfast.errors import Busy


async def doctor(door: Door, *, rebuild: bool, restore: Path | None = None, as_json: bool) -> int:
    """Exit code 0 if all is well, 1 if something was found. Raises Busy (`DaemonRunning`), StoreError."""
    from standfast.store import doctor as examine

    if (rebuild or restore is not None) and _daemon_runs(door):
        raise Busy(
            "DaemonRunning",
            "The daemon is using the store. Nothing was changed. Stop it first: `standfast daemon stop`.",
        )
    path = door.places.store
    replaced = None if restore is None else _put_back(path, restore)
    told = None if as_json or not output.err.is_terminal else _show_how_far
    try:
        report = await (examine.rebuild(path, told) if rebuild else examine.check(path, told))
    finally:
        if told is not None:
            told("", 0, 0)
    if restore is not None:
        report["restored"], report["replaced"] = str(restore), replaced
    if as_json:
        output.print_json(report)
    else:
        _show(report)
    return output.DONE if report["ok"] else output.FAILED


def _show_how_far(what: str, done: int, total: int) -> None:
    """One line of the terminal that is written over, and at last blank."""
    said = f"{what}: {done:,} of {total:,}" if total > 1 else what
    output.err.print(f"\r{said:<50}\r", end="", markup=False)


def _put_back(path: Path, backup: Path) -> str | None:
    """Returns where the store that was there is kept. Raises StoreError (`BackupDamaged`, …): then nothing was changed."""
    from standfast.store.backup import restore_backup

    kept = restore_backup(path, backup.absolute(), SystemClock().now_ms())
    return None if kept is None else str(kept)


def _daemon_runs(door: Door) -> bool:
    sock = door.connect()
    if sock is None:
        return False
    sock.close()
    return True


def _show(report: Json) -> None:
    """What was looked at, then what was found, one line each."""
    output.out.print(
        f"{report['store']}: {report.get('sessions', 0)} sessions, {report.get('events', 0)} events", markup=False
    )
    for line in _findings(report):
        output.out.print(Text.assemble(("! ", "bold yellow"), output.plain(line)))
    if report["ok"]:
        output.out.print("[green]All is well.[/]")
    else:
        output.out.print(
            "Nothing was changed by looking. --rebuild makes the tables anew from the log; `kept` copies stay."
        )


def _findings(report: Json) -> list[str]:
    found = [] if report.get("quickCheck", "ok") == "ok" else [f"pages: {report['quickCheck']}"]
    found += [f"{one['sessionId']}, event {one['atSeq']}: {one['reason']}" for one in report.get("damage", [])]
    found += [f"stored bytes are not what was written: {one}" for one in report.get("damagedBlobs", [])]
    found += [f"a table differs from the log: {one}" for one in report.get("differences", [])]
    found += [f"made anew: {one}" for one in report.get("rebuilt", [])]
    found += [f"{report['restored']} is the store now"] if "restored" in report else []
    found += [str(one["message"]) for one in report.get("degraded", [])]
    return [*found, *(f"kept beside it: {one}" for one in report.get("kept", []))]
