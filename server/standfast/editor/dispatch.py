"""A request to its answer: methods of ours by the method table, methods of LSP by pygls' feature table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from standfast.editor.answers import Answer
from standfast.editor.clients import CONVERTER, Client
from standfast.editor.core import Core
from standfast.editor.faults import WireFault
from standfast.editor.handlers import HANDLERS
from standfast.editor.lsp_server import EditorServer, invoke, structure_params
from standfast.editor.messages import Request
from standfast.protocol.base import Wire, wire_json
from standfast.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from standfast.protocol.methods import REQUESTS


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may run: where it waits, whether it may be stopped half way, and what it does."""

    key: str | None
    reads: bool
    run: Callable[[], Any]
    """Returns an awaitable of an Answer."""
    stops: bool = False


def prepare(core: Core, client: Client, server: EditorServer | None, request: Request) -> Prepared:
    """Look a request up and check its params. Raises WireFault (-32601, -32602); pydantic's errors are made -32602 by the caller."""
    method = REQUESTS.get(request.method)
    if method is not None:
        handler = HANDLERS[request.method]
        params = method.params.model_validate({} if request.params is None else _by_name(request.params))
        key = _key(params) if method.serialize_on == "session" else None
        return Prepared(key, method.reads, lambda: handler(core, client, params), method.stops)
    feature = server.handler(request.method) if server is not None else None
    if feature is None:
        raise WireFault(METHOD_NOT_FOUND, f"There is no method {_shown(request.method)}.")
    lsp_params = structure_params(request.method, request.params)
    return Prepared(None, request.method not in _CHANGING, lambda: _lsp(feature, lsp_params))


_CHANGING = frozenset({"workspace/executeCommand"})


async def _lsp(feature: Callable[[Any], Any], params: Any) -> Answer:
    result = await invoke(feature, params)
    return result if isinstance(result, Answer) else Answer(encode_lsp(result))


def encode_lsp(value: Any) -> bytes:
    """An lsprotocol value, a payload of ours, or plain JSON values, as JSON."""
    if isinstance(value, Wire):
        return wire_json(value)
    return orjson.dumps(CONVERTER.unstructure(value))


def _by_name(params: Any) -> Any:
    if isinstance(params, list):
        errors: list[dict[str, Any]] = [{"loc": [], "msg": "give them by name, as an object"}]
        raise WireFault(INVALID_PARAMS, "Params are given by name, as an object.", {"errors": errors})
    return params


def _key(params: Wire) -> str:
    """What a request is ordered by: its session, else the run, call or conflict that it names."""
    for name in ("session_id", "run_id", "call_id", "conflict_id"):
        value = getattr(params, name, None)
        if value:
            return str(value)
    return ""


def _shown(name: str) -> str:
    """A method's name for a sentence: short and without control characters."""
    return "".join(c if c.isprintable() else "?" for c in name[:80])
