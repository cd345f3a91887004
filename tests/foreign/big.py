"""Big Codex files, made of the shapes of the real ones, and what taking one in costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def write_rollout(file: Path, folder: Path, size: int, lines: int = 100) -> int:
    """A rollout of about `size` bytes, each call's output of so many lines; returns its number of turns."""
    output = "line of output that a test run printed\n" * lines
    turns = 0
    with file.open("w") as out:
        meta = {
            "type": "session_meta",
            "timestamp": "2026-11-29T15:00:00Z",
            "payload": {"id": file.stem, "cwd": str(folder)},
        }
        out.write(json.dumps(meta) + "\n")
        while out.tell() < size:
            turns += 1
            call = f"call_{turns}"
            for payload in (
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"turn {turns}"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Running it."}]},
                {"type": "function_call", "name": "exec_command", "call_id": call, "arguments": '{"cmd": "pytest"}'},
                {
                    "type": "function_call_output",
                    "call_id": call,
                    "output": f"Process exited with code 0\nOutput:\n{output}",
                },
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It passes."}]},
            ):
                out.write(
                    json.dumps({"type": "response_item", "timestamp": "2026-11-29T15:00:01Z", "payload": payload})
                    + "\n"
                )
    return turns


def taken_in(place: Path, size: int, lines: int = 100) -> dict[str, Any]:
    """Take a file of this size in, in a process of its own; `{grownMb, progress, events, turns}`."""
    (place / "project").mkdir()
    turns = write_rollout(place / "rollout-big.jsonl", place / "project", size, lines)
    paths = os.pathsep.join(str(path) for path in (HERE.parent / "long", HERE.parent))
    words = [sys.executable, str(HERE / "taking_process.py"), str(place), str(place / "rollout-big.jsonl")]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "turns": turns}
