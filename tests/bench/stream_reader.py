"""`python stream_reader.py PORT STREAMS COUNT RATE`: our reader of the model's stream alone, with no daemon around it.

Writes the CPU time that a delta costs it, in µs: what the daemon's own cost is measured beside.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from standfast.config import ModelSettings
from standfast.model.anthropic_model import AnthropicModel
from standfast.model.base import ModelRequest, TextDelta
from standfast.model.credentials import Credentials


async def main(port: int, streams: int, count: int, rate: int) -> None:
    model = AnthropicModel(
        ModelSettings(base_url=f"http://127.0.0.1:{port}"), Credentials(Path("/nonexistent"), from_environment="bench")
    )

    async def read(text: str) -> int:
        request = ModelRequest("bench", "", [{"role": "user", "content": text}], [])
        return len([item async for item in model.stream(request) if isinstance(item, TextDelta)])

    await read("warm up")
    before = time.process_time()
    read_of_each = await asyncio.gather(*(read(f"paced {count} {rate}") for _ in range(streams)))
    sys.stdout.write(f"{(time.process_time() - before) * 1e6 / sum(read_of_each)}\n")
    await model.close()


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])))
