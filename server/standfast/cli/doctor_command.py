"""`standfast doctor`: check the store by itself, with or without a daemon; `--rebuild` makes its tables anew from the log."""

from __future__ import annotations

from standfast.cli import output
from standfast.cli.door import Door
from standfast.errors import Busy


async def doctor(door: Door, *, rebuild: bool, as_json: bool) -> int:
    """Exit code 0 if all is well, 1 if something was found."""
    from standfast.store import doctor as examine

    if rebuild and _daemon_runs(door):
        raise Busy(
            "DaemonRunning",
            "The daemon is using the store. Nothing was changed. Stop it first: `standfast daemon stop`.",
        )
    path = door.places.store
    report = await (examine.rebuild(path) if rebuild else examine.check(path))
    if as_json:
        output.print_json(report)
    return output.DONE


def _daemon_runs(door: Door) -> bool:
    sock = door.connect()
    if sock is None:
        return False
    sock.close()
    return True
