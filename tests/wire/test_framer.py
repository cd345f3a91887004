"""The framer alone: every form of the base protocol is read, everything else ends the stream, in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.editor.framer import BODY_MAX, HEADER_MAX, BadFrame, Framer

BODY = b'{"jsonrpc":"2.0"}'
LENGTH = str(len(BODY)).encode()


def read(data: bytes) -> list[bytes | BadFrame]:
    return Framer().feed(data)


@pytest.mark.scenario("ATK-48")
@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: %b\r\n\r\n",
        b"content-length: %b\r\n\r\n",
        b"CONTENT-LENGTH:%b\r\n\r\n",
        b"Content-Length:   %b  \r\n\r\n",
        b"Content-Length : %b\r\n\r\n",
        b"Content-Length: %b\n\n",
        b"Content-Length: %b\r\n\n",
        b"Content-Length: 0000%b\r\n\r\n",
        b"Content-Length: %b\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b'Content-Type: application/vscode-jsonrpc; charset="UTF8"\r\nContent-Length: %b\r\n\r\n',
        b"Content-Type: application/json\nContent-Length: %b\n\n",
    ],
)
def test_every_form_of_header_is_read(header: bytes) -> None:
    assert read(header % LENGTH + BODY) == [BODY]


@pytest.mark.scenario("ATK-48")
@pytest.mark.scenario("ATK-02")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", -32700),
        (b"POST /x HTTP/1.1\r\n", -32700),
        (b"Host: x\r\nContent-Length: 2\r\n\r\n{}", -32700),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", -32700),
        (b"Content-Length: -1\r\n\r\n", -32700),
        (b"Content-Length: +2\r\n\r\n{}", -32700),
        (b"Content-Length: 2.0\r\n\r\n{}", -32700),
        (b"Content-Length: 0x2\r\n\r\n{}", -32700),
        (b"Content-Length: 1_0\r\n\r\n", -32700),
        ("Content-Length: ٢\r\n\r\n{}".encode(), -32700),
        (b"Content-Length:\r\n\r\n", -32700),
        (b"Content-Type: a/b\r\n\r\n{}", -32700),
        (b"\r\n\r\n{}", -32700),
        (b"\n{}", -32700),
        (b"Content-Length: 2\r\nContent-Type: a/b; charset=utf-16\r\n\r\n{}", -32700),
        (b"Content-Length: 1000000000000000000\r\n\r\n", -32600),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", -32600),
        (b"Content-Length: %d\r\n\r\n" % (BODY_MAX + 1), -32600),
        (b"Content-Length: 2" + b" " * HEADER_MAX + b"\r\n\r\n{}", -32700),
        (b"Content-Length" + b"x" * 1_000_000, -32700),
    ],
)
def test_a_bad_header_ends_the_stream(data: bytes, code: int) -> None:
    framer = Framer()
    found = framer.feed(data)
    assert [item.code for item in found if isinstance(item, BadFrame)] == [code] and len(found) == 1
    assert framer.dead and framer.feed(b"Content-Length: 2\r\n\r\n{}") == []


def test_the_largest_body_is_allowed_and_an_empty_one_too() -> None:
    assert read(b"Content-Length: 0\r\n\r\n") == [b""]
    framer = Framer(body_max=4)
    assert framer.feed(b"Content-Length: 4\r\n\r\nfour") == [b"four"]


def test_a_message_before_a_bad_frame_is_still_given() -> None:
    found = read(b"Content-Length: 2\r\n\r\n{}" + b"GET / HTTP/1.1\r\n")
    assert found[0] == b"{}" and isinstance(found[1], BadFrame)


def test_it_knows_whether_a_message_has_begun() -> None:
    framer = Framer()
    assert not framer.within
    framer.feed(b"Con")
    assert framer.within
    framer.feed(b"tent-Length: 2\r\n\r\n{")
    assert framer.within
    assert framer.feed(b"}") == [b"{}"]
    assert not framer.within


HEADERS = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\n\n",
        b"Content-Type: x; charset=utf8\r\nContent-Length: %d\r\n\r\n",
    ]
)
STREAMS = st.lists(st.tuples(HEADERS, st.binary(max_size=40)), max_size=6)
ENDINGS = st.sampled_from([b"", b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: x\r\n\r\n", b"Content-Len"])


@given(STREAMS, ENDINGS, st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_any_split_of_a_stream_gives_the_same(
    messages: list[tuple[bytes, bytes]], ending: bytes, sizes: list[int]
) -> None:
    stream = b"".join(header % len(body) + body for header, body in messages) + ending
    whole = read(stream)
    framer, split, at, turn = Framer(), list[bytes | BadFrame](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        split += framer.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert split == whole
    assert [item for item in whole if isinstance(item, bytes)] == [body for _, body in messages]
