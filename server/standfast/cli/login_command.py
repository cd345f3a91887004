"""`standfast login`: the key goes over the user's own socket to the daemon, which stores it; it is never shown or logged."""

from __future__ import annotations

import getpass
import sys

from standfast.cli import output
from standfast.cli.door import Door
from standfast.cli.talk import talk
from standfast.errors import StandfastError


async def login(door: Door, *, remove: bool) -> int:
    """Ask for the key on the terminal without showing it, or take the first line of stdin."""
    key = None if remove else _read_key()
    if key == "":
        raise StandfastError("KeyMissing", "No key was given. Nothing was changed.")
    async with talk(door) as client:
        await client.request("standfast/credentials/set", {"provider": "anthropic", "key": key})
    output.out.print("The key is removed." if remove else "The key is stored, readable by you only.")
    return output.DONE


def _read_key() -> str:
    if sys.stdin.isatty():
        return getpass.getpass("Key of the Messages API (it is not shown): ").strip()
    return sys.stdin.readline().strip()
