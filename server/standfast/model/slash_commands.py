"""What the scripted model can do in any project: lines of the person's message that begin with a slash, one call each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from standfast.model.script_line import Line
from standfast.model.script_reader import Conversation

HELP = """\
I am Standfast's scripted model: I work without a network and understand only these lines.

/read PATH          read a file
/list [GLOB]        list files
/search PATTERN     search in files
/run COMMAND        run a command
/write PATH         write the lines that follow, up to /end
/patch              apply the patch that follows (*** Begin Patch … *** End Patch)

For a real model set `provider = "anthropic"` under `[model]` in config.toml, and a key with `standfast login`.\
"""

Call = tuple[str, dict[str, Any]]
ONE_LINE: dict[str, Callable[[str], Call]] = {
    "/read": lambda rest: ("read_file", {"path": rest}),
    "/list": lambda rest: ("list_files", {"glob": rest} if rest else {}),
    "/search": lambda rest: ("search", {"pattern": rest}),
    "/run": lambda rest: ("run_command", {"command": rest}),
}


def calls_in(request: str) -> list[Call]:
    """The calls that a message asks for, in order. Lines that are no command are left alone."""
    found: list[Call] = []
    lines = iter(request.splitlines())
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word in ONE_LINE:
            found.append(ONE_LINE[word](rest.strip()))
        elif word == "/write":
            body = _until(lines, "/end", keep=False)
            found.append(("write_file", {"path": rest.strip(), "content": "".join(f"{each}\n" for each in body)}))
        elif word == "/patch":
            body = _until(lines, "*** End Patch", keep=True)
            found.append(("apply_patch", {"patch": "".join(f"{each}\n" for each in body)}))
    return found


def next_line(conversation: Conversation, tools: Collection[str]) -> Line:
    """The next call that was asked for and not yet made, else what came of them."""
    calls = calls_in(conversation.request)
    if not calls:
        return Line(HELP)
    made = len(conversation.steps)
    if made < len(calls):
        tool, args = calls[made]
        if tool not in tools:
            return Line(f"There is no tool {tool} here, so I stop before {tool}.")
        return Line(f"{made + 1} of {len(calls)}: {tool}.", tool, args)
    lines = [
        f"{number}. {step.tool}: {'done' if step.state == 'done' else step.state.replace('_', ' ')}"
        for number, step in enumerate(conversation.steps, 1)
    ]
    return Line("\n".join(["That was all:", *lines]))


def _until(lines: Iterator[str], end: str, *, keep: bool) -> list[str]:
    """The lines up to `end` (or to the message's end)."""
    body: list[str] = []
    for line in lines:
        if line.strip() == end:
            return [*body, line] if keep else body
        body.append(line)
    return body
