"""The place where a session's calls work: a `ToolContext` made from rows (R2.1). Tools never see the session behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from standfast.events.types import Intent, SeenFile, ToolOutput, ToolResult
from standfast.projections.rows import CallRow, SessionRow
from standfast.session.parts import Parts
from standfast.session.trust import NEVER, Trust
from standfast.session.workspace import to_path
from standfast.store.base import Store
from standfast.tools.base import StartedCall, ToolContext, no_output


async def tool_context(
    parts: Parts,
    row: SessionRow,
    call_id: str,
    operation_id: str,
    *,
    workspace: Path | None = None,
    trust: Trust = NEVER,
    output: Callable[[str], Awaitable[None]] = no_output,
) -> ToolContext:
    """Where a call of this session works; `workspace` only where it has been looked at already. Without `trust` the folder's own
    files act on nothing: that is right for every look after a crash.
    """
    seen = {
        path: SeenFile(path=path, version=one.version, whole=one.whole, blob=one.blob)
        for path, one in (await parts.store.seen(row.session_id)).items()
    }

    async def result(asked: str) -> str | None:
        return await _result(parts.store, row.session_id, asked)

    return ToolContext(
        workspace=workspace or to_path(row.workspace_uri),
        spool=parts.spool,
        session_id=row.session_id,
        call_id=call_id,
        operation_id=operation_id,
        buffers=parts.buffers,
        seen=seen,
        blob=parts.store.blob,
        output=output,
        trusted=trust.trusted,
        distrusted=trust.changed,
        sandbox=parts.sandbox,
        goal=row.goal,
        result=result,
    )


async def _result(store: Store, session_id: str, call_id: str) -> str | None:
    """What a call was answered with, as the log has it; only calls of this session are known to it."""
    call = await store.call(call_id)
    if call is None or call.session_id != session_id or call.result_seq is None:
        return None
    [event] = await store.events(session_id, after_seq=call.result_seq - 1, limit=1)
    return event.fact.content if isinstance(event.fact, ToolResult) else None


class LiveOutput:
    """A call's live output as `tool_output` events; `offset` counts UTF-16 units."""

    def __init__(self, parts: Parts, session_id: str, run_id: str, call_id: str) -> None:
        self._parts = parts
        self._session_id = session_id
        self._run_id = run_id
        self._call_id = call_id
        self._offset = 0

    async def __call__(self, text: str) -> None:
        if not text:
            return
        fact = ToolOutput(call_id=self._call_id, offset=self._offset, text=text)
        self._offset += len(text.encode("utf-16-le", "surrogatepass")) // 2
        await self._parts.journal.emit(self._session_id, fact, run_id=self._run_id)


def started_call(row: CallRow) -> StartedCall:
    """A call as its row has it, for `verify` and `settle`."""
    intents = tuple(Intent.model_validate(intent) for intent in row.intents)
    return StartedCall(row.call_id, row.operation_id or "", row.args, intents)
