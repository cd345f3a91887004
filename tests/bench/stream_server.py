"""The least that speaks the Messages API: what the last user text asks for is streamed as fast as, or at the pace that, it says.

    burst N            N deltas at once
    paced N RATE       N deltas, RATE a second; each holds the monotonic time (ns) at which it was sent
    edit PATH OLD NEW  one edit_file call
anything else          one delta

Run as a process; it prints its port. Standard library only, so that it is also the measure of a bare loopback reader.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from typing import Any

_calls = itertools.count(1)


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def delta(text: str) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def begin(block: dict[str, Any]) -> bytes:
    message = {
        "id": "msg_bench", "type": "message", "role": "assistant", "model": "bench", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    return event("message_start", message=message) + event("content_block_start", index=0, content_block=block)


def end(stop_reason: str) -> bytes:
    told = {"stop_reason": stop_reason, "stop_sequence": None}
    return (
        event("content_block_stop", index=0)
        + event("message_delta", delta=told, usage={"output_tokens": 1})
        + event("message_stop")
    )


TEXT = {"type": "text", "text": ""}


async def answer(words: list[str], write: Any) -> None:
    """The body, piece by piece."""
    match words:
        case ["burst", count]:
            await write(begin(TEXT) + b"".join(delta(f"word {n} ") for n in range(int(count))) + end("end_turn"))
        case ["paced", count, rate]:
            await write(begin(TEXT))
            began = time.monotonic()
            for n in range(int(count)):
                await asyncio.sleep(max(0.0, began + n / float(rate) - time.monotonic()))
                await write(delta(f"{time.monotonic_ns()}\n"))
            await write(end("end_turn"))
        case ["edit", path, old, new]:
            args = json.dumps({"path": path, "old_text": old, "new_text": new})
            block = {"type": "tool_use", "id": f"toolu_{next(_calls)}", "name": "edit_file", "input": {}}
            told = {"type": "input_json_delta", "partial_json": args}
            await write(begin(block) + event("content_block_delta", index=0, delta=told) + end("tool_use"))
        case _:
            await write(begin(TEXT) + delta("word ") + end("end_turn"))


def last_words(body: bytes) -> list[str]:
    """What the last user text asks for; nothing after a tool's result."""
    content = json.loads(body)["messages"][-1]["content"]
    if isinstance(content, str):
        return content.split()
    texts = [block.get("text", "") for block in content if block["type"] == "text"]
    return texts[-1].split() if texts and not any(block["type"] == "tool_result" for block in content) else []


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def write(piece: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()

    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            words = last_words(await reader.readexactly(size))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            await answer(words, write)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
