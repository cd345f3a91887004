"""The watcher of passing frames sees the same whatever the pieces."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.cli.client import frame
from standfast.daemon.frames import BODY_BYTES_MAX, FrameWatcher

INITIALIZE = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"processId": 4711}}
BIG = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"text": '"shutdown" exit ' * BODY_BYTES_MAX}}
SHUTDOWN = {"jsonrpc": "2.0", "id": 8, "method": "shutdown"}
EXIT = {"jsonrpc": "2.0", "method": "exit"}
STREAM = b"".join(map(frame, (INITIALIZE, {"method": "x", "params": {"method": "exit"}}, BIG, SHUTDOWN, EXIT)))


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_of_the_stream_gives_the_same(cuts: list[int]) -> None:
    watcher = FrameWatcher()
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, stop in itertools.pairwise(edges):
        if stop < len(STREAM) - len(frame(EXIT)):
            assert not watcher.saw_exit
        watcher.feed(STREAM[start:stop])
    assert (watcher.initialize_id, watcher.editor_pid) == (7, 4711)
    assert watcher.saw_shutdown
    assert watcher.saw_exit


@pytest.mark.parametrize(
    "header", ["content-length:%d\r\n\r\n", "CONTENT-LENGTH: %d\nX: y\n\n", "A: b\r\nContent-Length: %d\r\n\r\n"]
)
def test_every_header_form_of_the_base_protocol_is_understood(header: str) -> None:
    body = json.dumps(SHUTDOWN).encode()
    watcher = FrameWatcher()
    watcher.feed((header % len(body)).encode() + body)
    assert watcher.saw_shutdown


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(noise: bytes) -> None:
    watcher = FrameWatcher()
    watcher.feed(noise)
    watcher.feed(b"Content-Length: 99999999999999999999999\r\n\r\n[[[")
    watcher.feed(noise)
