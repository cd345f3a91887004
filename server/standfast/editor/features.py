"""LSP requests of any client: code actions, code lens, commands, the transcript document. Thin: the decisions are pure modules'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from lsprotocol import types

from standfast.editor import code_actions, uris
from standfast.editor.changed_files import lenses
from standfast.editor.clients import Client
from standfast.editor.code_actions import Matter
from standfast.editor.commands import execute
from standfast.editor.core import Core
from standfast.editor.faults import WireFault
from standfast.editor.lsp_server import jsonable
from standfast.errors import NotFound
from standfast.projections.attention import AttentionItem
from standfast.protocol.errors import INVALID_PARAMS


def features_of(core: Core, client: Client) -> dict[str, Callable[[Any], Any]]:
    """The handlers of one connection, by LSP method."""

    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        if not code_actions.wanted(params.context.only):
            return []
        items = core.publisher.board.of_document(params.text_document.uri, client)
        matters = [await _matter(core, item) for item in code_actions.touched(items, params.range)]
        return code_actions.actions(matters)

    async def resolve(action: types.CodeAction) -> types.CodeAction:
        """An action carries its command from the start; a client that kept only `data` gets it back."""
        data = jsonable(action.data)
        if action.command is None and isinstance(data, dict):
            kept = cast(dict[str, Any], data)
            if "command" in kept and "argument" in kept:
                action.command = types.Command(
                    title=action.title, command=str(kept["command"]), arguments=[kept["argument"]]
                )
        return action

    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        return await lenses(core.sessions, client, params.text_document.uri)

    async def execute_command(params: types.ExecuteCommandParams) -> Any:
        return await execute(core, client, params.command, params.arguments or [])

    async def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        text = await core.publisher.transcripts.text(params.uri)
        if text is None:
            raise WireFault(
                INVALID_PARAMS, "There is no such document.", {"errors": [{"loc": ["uri"], "msg": "names nothing"}]}
            )
        return types.TextDocumentContentResult(text=text)

    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        """Announced to pygls so that clients report saves; `lifecycle` takes them."""

    return {
        types.TEXT_DOCUMENT_CODE_ACTION: code_action,
        types.CODE_ACTION_RESOLVE: resolve,
        types.TEXT_DOCUMENT_CODE_LENS: code_lens,
        types.WORKSPACE_EXECUTE_COMMAND: execute_command,
        types.WORKSPACE_TEXT_DOCUMENT_CONTENT: content,
        types.TEXT_DOCUMENT_DID_SAVE: saved,
    }


async def _matter(core: Core, item: AttentionItem) -> Matter:
    """An item with the facts that say what fits now; what has gone meanwhile has no actions."""
    if item.trust is not None:
        return Matter(item)
    try:
        if item.conflict_id is not None:
            return Matter(item, conflict=await core.sessions.conflict(item.conflict_id))
        found = await core.sessions.recovery(item.session_id)
    except NotFound:
        return Matter(item)
    if found is None:
        return Matter(item)
    call = next((row for row in found.calls if row.call_id == item.call_id), None)
    about = _of_file(found.calls, item) if call is None and item.code == "interrupted-run" else call
    return Matter(item, call=about, run=found.interrupted_run)


def _of_file(calls: list[Any], item: AttentionItem) -> Any:
    """The interrupted run's call that acted on the item's file."""
    key = uris.key_of(item.uri)
    return next((c for c in calls if any(uris.key_of(str(t.get("uri") or "")) == key for t in c.targets)), None)
