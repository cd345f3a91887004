"""The fake as a process: `python -m fake_api [--port 0] [--key KEY] --script FILE`. Prints its URL, ends at SIGTERM or EOF.

FILE is Python with a name `script` (a list, or a function from the request to its answer), or JSON: a list of
`{"text": [...], "thinking"?, "tools": [{"name", "input"|"raw", "id"?}], "stop_reason"?, "ending"?: {"how", "after"},
"gate"?: {"name", "after"}, "per_second"?}` or `{"error": "overloaded_error", "message"?, "headers"?}`.
Requests: GET /_fake/requests. Gates: POST /_fake/gates/NAME/release.
"""

from __future__ import annotations

import argparse
import json
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from fake_api import Ending, FakeApi, Gate, ToolUse, http_error, reply
from fake_api.replies import Answer
from fake_api.server import Script


def answer_of(entry: dict[str, Any]) -> Answer:
    """One entry of a JSON script."""
    if "error" in entry:
        return http_error(entry["error"], entry.get("message", ""), **entry.get("headers", {}))
    texts = entry.get("text", [])
    made = reply(
        *([texts] if isinstance(texts, str) else texts),
        thinking=entry.get("thinking"),
        tools=[ToolUse(**each) for each in entry.get("tools", [])],
        stop_reason=entry.get("stop_reason"),
    )
    if "ending" in entry:
        made = made.ending(Ending(entry["ending"]["how"]), after=entry["ending"]["after"])
    if "gate" in entry:
        made = made.insert(Gate(entry["gate"]["name"]), after=entry["gate"]["after"])
    return made.paced(entry["per_second"]) if "per_second" in entry else made


def load(path: Path) -> Script:
    """The script of a file."""
    if path.suffix == ".py":
        return runpy.run_path(str(path))["script"]
    return [answer_of(entry) for entry in json.loads(path.read_text("utf-8"))]


def main() -> None:
    options = argparse.ArgumentParser(prog="fake_api")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--key", default="test-key")
    options.add_argument("--script", type=Path, required=True)
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with FakeApi(load(chosen.script), key=chosen.key, port=chosen.port) as api:
        sys.stdout.write(api.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
