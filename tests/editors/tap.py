"""`standfast lsp` with a listener: each message, either way, is first told to a socket as a line `{"client"|"daemon": MESSAGE}`.

python tap.py SOCKET     in place of `standfast lsp`
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from typing import BinaryIO


def copy(side: str, source: BinaryIO, target: BinaryIO, listener: BinaryIO, lock: threading.Lock) -> None:
    """Pass framed messages on until one side closes."""
    while line := source.readline():
        head = line
        while line.strip():
            line = source.readline()
            head += line
        length = next(
            int(part.split(b":")[1]) for part in head.split(b"\r\n") if part.lower().startswith(b"content-length")
        )
        body = source.read(length)
        with lock:
            listener.write(json.dumps({side: json.loads(body)}).encode() + b"\n")
            listener.flush()
        try:
            target.write(head + body)
            target.flush()
        except OSError:
            return
    target.close()


def main() -> int:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    listener = connection.makefile("wb")
    lock = threading.Lock()
    lsp = subprocess.Popen(
        [sys.executable, "-P", "-m", "standfast", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert lsp.stdin is not None
    assert lsp.stdout is not None
    sent = (sys.stdin.buffer, lsp.stdin, listener, lock)
    threading.Thread(target=copy, args=("client", *sent), daemon=True).start()
    copy("daemon", lsp.stdout, sys.stdout.buffer, listener, lock)
    return lsp.wait()


if __name__ == "__main__":
    sys.exit(main())
