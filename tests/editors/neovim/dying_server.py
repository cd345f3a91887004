"""Servers that fail, for what a client must bear: `exit` at once, `refuse` initialize, or `mute`: die at the first request of ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REFUSAL = "This daemon speaks protocol 2, your editor 1. Nothing was changed. Update the plugin."


def read() -> dict[str, Any]:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit(1)


def answer(message: dict[str, Any], **said: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def main() -> None:
    how, log = sys.argv[1:3]
    with Path(log).open("a") as starts:
        starts.write("start\n")
    if how == "exit":
        sys.exit(1)
    while True:
        message = read()
        if message["method"] == "initialize" and how == "refuse":
            answer(message, error={"code": -32056, "message": REFUSAL, "data": {"reason": "VersionMismatch"}})
        elif message["method"] == "initialize":
            answer(message, result={"capabilities": {"experimental": {"standfast": {"protocolVersion": 1}}}})
        elif message["method"] == "standfast/session/create":
            sys.exit(1)
        elif "id" in message:
            answer(message, result={"sessions": []})


if __name__ == "__main__":
    main()
