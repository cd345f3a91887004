"""What a person waits for in the editors: opening a folder until the history is there, a chat of 10,000 events, keys while text streams.

Neovim's figures hold a whole Neovim, from its start; VS Code's are those that its stories measure in the real window.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

from bench.measure import Row, median
from bench.place import place
from editors.neovim.instance import HERE as NEOVIM
from editors.neovim.instance import find_nvim, variables

EVENTS = 10_000
RUN_EVENTS = 5
WINDOW = NEOVIM.parent / "vscode"
STORIES = ("ui/long.mjs", "ui/installed.mjs")
SAID = (
    ("VS Code: a new window until the history is there", "ms", r"history visible: (\d+) ms, .* took (\d+) ms"),
    (f"VS Code: first paint of a chat of {EVENTS:,} events", "ms", r"first paint of the page (\d+) ms"),
    ("VS Code: heap of the page after some hundred turns were paged in", "MB", r"older pages (\d+) MB of heap"),
    ("VS Code: a key until the next frame, 200 tokens/s (p50)", "ms", r"200 tokens/s stream: p50 (\d+) ms"),
    ("VS Code: the same (p95)", "ms", r"200 tokens/s stream: p50 \d+ ms, p95 (\d+) ms"),
)
"""What, unit, and where a story says it; a second figure is what the editor itself took."""
SHOWN = """\
vim.cmd.Standfast('chat')
local function shown()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local bufnr = vim.api.nvim_win_get_buf(window)
    local lines = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\\n')
    if vim.bo[bufnr].filetype == 'standfast' and lines:find(LAST, 1, true) then return true end
  end
end
assert(vim.wait(60000, shown, 1))
io.stdout:write(('%d'):format(vim.uv.resident_set_memory()))
"""


async def rows(tmp: Path, quick: bool) -> AsyncGenerator[Row]:
    """Nothing for an editor that is not there."""
    for row in [
        *await asyncio.to_thread(_neovim, tmp / "neovim", 3 if quick else 7),
        *await asyncio.to_thread(_vscode),
    ]:
        yield row


def _neovim(tmp: Path, times: int) -> list[Row]:
    program = find_nvim()
    if program is None:
        return []
    with place(tmp) as here:
        export = _export(tmp / "export", here.folder.as_uri())
        env = variables(here.home, {}, {})
        subprocess.run(
            [sys.executable, "-P", "-m", "standfast", "import", str(export)],
            env=env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (here.folder / "notes.txt").write_text("x = 1\n")
        script = tmp / "shown.lua"
        script.write_text(f"local LAST = 'Answer {EVENTS // RUN_EVENTS}'\n{SHOWN}")
        words = [
            program,
            "--clean",
            "-u",
            str(NEOVIM / "init.lua"),
            "--headless",
            "notes.txt",
            "-c",
            f"luafile {script}",
        ]
        full = [_timed([*words, "-c", "qall!"], here.folder, env) for _ in range(times)]
        bare = [
            _timed([program, "--clean", "--headless", "notes.txt", "-c", "qall!"], here.folder, env)[0]
            for _ in range(times)
        ]
    megabytes = median([int(said or 0) / 1e6 for _, said in full])
    what = f"Neovim: from its start until a history of {EVENTS:,} events is there"
    return [
        Row(what, median([ms for ms, _ in full]), "ms", "Neovim with no plugin", median(bare)),
        Row(f"Neovim: memory with a chat of {EVENTS:,} events", megabytes, "MB"),
    ]


def _timed(words: list[str], cwd: Path, env: dict[str, str]) -> tuple[float, str]:
    begin = time.perf_counter()
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000, ran.stdout


def _vscode() -> list[Row]:
    """The stories say their figures on lines of their own."""
    program = Path(sys.executable).parent / "standfast"
    ran = subprocess.run([sys.executable, str(WINDOW / "install.py")], capture_output=True, text=True, check=True)
    tools = json.loads(ran.stdout)
    if tools["missing"]:
        return []
    path = os.pathsep.join([tools["path"], os.environ["PATH"]])
    words = [tools["node"], str(WINDOW / "run.mjs"), *STORIES]
    env = {**os.environ, "PATH": path, "STANDFAST_PROGRAM": str(program), "PYTHON": sys.executable}
    said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    return [_row(what, unit, match) for what, unit, pattern in SAID if (match := re.search(pattern, said))]


def _row(what: str, unit: str, match: re.Match[str]) -> Row:
    value, *editor = map(float, match.groups())
    return Row(what, value, unit, "the editor itself", editor[0]) if editor else Row(what, value, unit)


def _export(folder: Path, workspace_uri: str) -> Path:
    """A session of many short turns, as `standfast export` writes one."""
    folder.mkdir(parents=True)
    (folder / "blobs").mkdir()
    lines = list(_events(workspace_uri))
    session = {
        "format": "standfast-session", "formatVersion": 1, "sessionId": "ses_long", "userId": "", "workspaceUri": workspace_uri,
        "title": "Long", "mode": "ask", "model": "", "status": "active", "createdAtMs": 1, "updatedAtMs": len(lines),
        "headSeq": len(lines),
    }  # fmt: skip
    (folder / "session.json").write_text(json.dumps(session))
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _events(workspace_uri: str) -> Iterator[dict[str, Any]]:
    usage = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
    first = {
        "type": "session_created",
        "workspaceUri": workspace_uri,
        "title": "Long",
        "mode": "ask",
        "model": "",
        "userId": "",
    }
    facts: list[dict[str, Any]] = [{**first, "identity": {}}]
    for run in range(1, EVENTS // RUN_EVENTS + 1):
        content = [{"kind": "text", "text": f"Question {run}"}]
        blocks = [{"type": "text", "text": f"Answer {run}"}]
        turn: list[dict[str, Any]] = [
            {"type": "run_started", "workerId": "w", "bootId": "b", "trigger": "message"},
            {
                "type": "user_message",
                "messageId": f"m{run}",
                "clientMessageId": f"c{run}",
                "content": content,
                "steer": False,
            },
            {"type": "model_request", "attempt": 1, "model": "m"},
            {"type": "assistant_message", "blocks": blocks, "stopReason": "end_turn", "usage": usage},
            {"type": "run_finished", "status": "succeeded", "usage": usage},
        ]
        facts += [{**fact, "runId": f"run_{run}"} for fact in turn]
    for seq, fact in enumerate(facts, 1):
        yield {"seq": seq, "atMs": seq, "sessionId": "ses_long", "v": 1, **fact}
