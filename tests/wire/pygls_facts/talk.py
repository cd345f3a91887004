"""A pygls server as a process, and raw bytes to it. Started with the word `serve`, a script is the server."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from typing import Any

from pygls.lsp.server import LanguageServer

QUIET_S = 3.0
"""After so long without an answer none comes."""


def frame(body: bytes, header: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return header % len(body) + body


def message(ident: int | None, method: str, params: Any = None) -> bytes:
    made: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if ident is not None:
        made["id"] = ident
    if params is not None:
        made["params"] = params
    return json.dumps(made).encode()


def hello() -> bytes:
    return frame(message(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}))


class Server:
    """`with Server(__file__) as server`: the script as a server on pipes."""

    def __init__(self, script: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, script, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._rest = b""

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def answer(self, ident: int, wait_s: float = QUIET_S) -> dict[str, Any] | None:
        """The answer with this id, None if it does not come."""
        assert self.process.stdout is not None
        descriptor, until = self.process.stdout.fileno(), time.monotonic() + wait_s
        while (left := until - time.monotonic()) > 0:
            while (found := self._message()) is not None:
                if found.get("id") == ident and "method" not in found:
                    return found
            if not select.select([descriptor], [], [], left)[0]:
                return None
            piece = self.process.stdout.read1(65536)  # pyright: ignore[reportAttributeAccessIssue]
            if not piece:
                return None
            self._rest += piece
        return None

    def _message(self) -> dict[str, Any] | None:
        head, gap, rest = self._rest.partition(b"\r\n\r\n")
        size = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]) if gap else 0
        if not gap or len(rest) < size:
            return None
        self._rest = rest[size:]
        return json.loads(rest[:size])


def server() -> LanguageServer:
    made = LanguageServer("facts", "1")

    @made.feature("facts/echo")
    def echo(params: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        return {"seen": repr(params)}

    return made


def verdict(what: str, still_so: object) -> None:
    """Say it, and end with 0 if it is still so."""
    sys.stdout.write(f"{'still so' if still_so else 'NOT SO ANY MORE'}: {what}\n")
    sys.exit(0 if still_so else 1)


def serve_if_asked() -> None:
    if sys.argv[1:] == ["serve"]:
        server().start_io()
        sys.exit(0)
