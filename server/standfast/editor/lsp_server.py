"""The language server of one connection: pygls holds the features, their options and what client and server can do.

pygls neither reads nor writes the stream here (design.md "Transport" lists why), and `exit` never reaches it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

from cattrs import BaseValidationError
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from standfast.editor.clients import CONVERTER, structure
from standfast.editor.faults import WireFault
from standfast.editor.uris import SESSION_SCHEME
from standfast.protocol.base import PROTOCOL_VERSION
from standfast.protocol.errors import INVALID_PARAMS
from standfast.protocol.methods import COMMANDS
from standfast.protocol.notices import ServerCapability

Feature = Callable[[Any], Any]

_OWN: frozenset[str] = frozenset(
    {
        types.SHUTDOWN,
        types.EXIT,
        types.CANCEL_REQUEST,
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
        types.WORKSPACE_EXECUTE_COMMAND,
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
        types.NOTEBOOK_DOCUMENT_DID_OPEN,
        types.NOTEBOOK_DOCUMENT_DID_CHANGE,
        types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    }
)
"""Built-in handlers of pygls that are never called: the connection and `texts.py` do this themselves."""

_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix], resolve_provider=True
    ),
    types.TEXT_DOCUMENT_CODE_LENS: types.CodeLensOptions(resolve_provider=False),
    types.TEXT_DOCUMENT_DID_SAVE: types.SaveOptions(include_text=False),
}


class EditorServer:
    """pygls' server object with our features; `features` maps LSP methods to handlers of structured params."""

    def __init__(self, version: str, features: dict[str, Feature]) -> None:
        self._server = LanguageServer("standfast", version, converter_factory=lambda: CONVERTER)
        for method, handler in features.items():
            self._server.feature(method, _OPTIONS.get(method))(handler)
        for command in COMMANDS:
            self._server.command(command)(_not_called)

    def handler(self, method: str) -> Feature | None:
        """What answers an LSP method, None if nothing does. Ours go before pygls' own."""
        manager = self._server.protocol.fm
        features = cast("dict[str, Feature]", cast(Any, manager).features)
        builtin = cast("dict[str, Feature]", cast(Any, manager).builtin_features)
        if method in builtin and method not in _OWN:
            return builtin[method]  # it calls ours, if there is one
        return features.get(method)

    def initialize(self, params: types.InitializeParams) -> types.InitializeResult:
        """pygls' own `initialize`, without waiting: it yields only to a handler of ours, and there is none."""
        generator = self._server.protocol.lsp_initialize(params)
        try:
            next(generator)
        except StopIteration as stop:
            return cast(types.InitializeResult, stop.value)
        raise AssertionError("pygls waits for a handler that nobody gave")

    @property
    def folders(self) -> list[str]:
        """URIs of the folders that the client has open now, as it spells them."""
        workspace = self._server.workspace
        found = [folder.uri for folder in workspace.folders.values()]
        return found or ([workspace.root_uri] if workspace.root_uri else [])

    @property
    def codec(self) -> Any:
        """How this client counts columns."""
        return self._server.workspace.position_codec

    def result(self, answer: types.InitializeResult, sandbox: str, version: str) -> types.InitializeResult:
        """Add what pygls does not know to its answer to `initialize`."""
        ours = ServerCapability(protocol_version=PROTOCOL_VERSION, daemon_version=version, sandbox=sandbox)
        answer.capabilities.experimental = {"standfast": ours.model_dump(by_alias=True)}
        workspace = answer.capabilities.workspace or types.WorkspaceOptions()
        workspace.text_document_content = types.TextDocumentContentOptions(schemes=[SESSION_SCHEME])
        workspace.workspace_folders = types.WorkspaceFoldersServerCapabilities(
            supported=True, change_notifications=True
        )
        workspace.file_operations = None
        answer.capabilities.workspace = workspace
        answer.capabilities.text_document_sync = types.TextDocumentSyncOptions(
            open_close=True,
            change=types.TextDocumentSyncKind.Incremental,
            save=types.SaveOptions(include_text=False),
        )
        return answer


_PARAMS: dict[str, Any] = {method: known[2] for method, known in cast(Any, types).METHOD_TO_TYPES.items()}
_MISFITS = (BaseValidationError, KeyError, TypeError, ValueError, AttributeError)
"""What cattrs and lsprotocol's hooks raise where JSON does not fit a type."""


def _not_called(*arguments: Any) -> None:
    """Stands in pygls' command table so that the command is announced; `commands.py` runs it."""


def prepare(version: str) -> None:
    """Let cattrs write its code for the handshake now (20 ms), so that no editor waits for it."""
    params = structure_params(types.INITIALIZE, {"processId": None, "rootUri": None, "capabilities": {}})
    server = EditorServer(version, {})
    CONVERTER.unstructure(server.result(server.initialize(params), "none", version))


def structure_params(method: str, params: Any) -> Any:
    """JSON params of an LSP method as its lsprotocol type. Raises -32602 with what does not fit."""
    shape = _PARAMS.get(method)
    if shape is None:
        return None
    try:
        return structure({} if params is None else params, shape)
    except _MISFITS as error:
        raise WireFault(INVALID_PARAMS, "The params do not fit.", {"errors": _complaints(error)}) from None


def _complaints(error: BaseException) -> list[dict[str, Any]]:
    """cattrs' complaints as `{loc, msg}`, without the values."""
    inner = getattr(error, "exceptions", None)
    if inner:
        return [complaint for one in inner for complaint in _complaints(one)][:20]
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    where = [note.split(" @ ")[0].rsplit(" ", 1)[-1] for note in notes]
    said = "field is missing" if isinstance(error, KeyError) else f"not the right type ({type(error).__name__})"
    place = str(error.args[0]) if isinstance(error, KeyError) and error.args else (where[0] if where else "params")
    return [{"loc": [place], "msg": said}]


async def invoke(handler: Feature, *arguments: Any) -> Any:
    """Call a handler of pygls' table, of whatever kind: plain, coroutine, or a generator that yields further handlers."""
    if inspect.isgeneratorfunction(handler):
        generator = handler(*arguments)
        value: Any = None
        while True:
            try:
                inner, inner_arguments, _ = generator.send(value)
            except StopIteration as stop:
                return stop.value
            value = await invoke(inner, *inner_arguments)
    found = handler(*arguments)
    return await found if asyncio.iscoroutine(found) else found


def jsonable(value: Any) -> Any:
    """An LSPAny as plain JSON values (cattrs may have made objects of it)."""
    return CONVERTER.unstructure(value)
