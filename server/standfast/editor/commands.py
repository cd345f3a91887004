"""`workspace/executeCommand`: the documented commands, each the wire method of its name (design.md "Commands").

`arguments[0]` is checked like the method's params: it came through an editor and may be anything (ATK-46).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from standfast.editor.answers import Answer
from standfast.editor.clients import Client
from standfast.editor.core import Core
from standfast.editor.faults import WireFault
from standfast.editor.handlers import HANDLERS
from standfast.editor.lsp_server import jsonable
from standfast.protocol.errors import INVALID_PARAMS
from standfast.protocol.methods import COMMANDS, REQUESTS


async def execute(core: Core, client: Client, command: str, arguments: Sequence[Any]) -> Answer:
    """Run a command. Raises WireFault (-32602) for one that is not ours."""
    name = COMMANDS.get(command)
    if name is None:
        errors = [{"loc": ["command"], "msg": "names no command of Standfast"}]
        raise WireFault(INVALID_PARAMS, "There is no such command.", {"errors": errors})
    argument: Any = jsonable(arguments[0]) if arguments else {}
    if name == "standfast/run/start" and isinstance(argument, dict):
        argument.setdefault("clientMessageId", core.ids.new("msg"))  # pyright: ignore[reportUnknownMemberType]
    return await HANDLERS[name](core, client, REQUESTS[name].params.model_validate(argument))


def result_of(answer: Answer) -> Any:
    """An answer's JSON as a value (tests and commands that go on with it)."""
    return orjson.loads(answer.result)
