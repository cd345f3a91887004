"""Attach and detach: from the answer on, a client gets every event once and in order (design.md "Paging")."""

from __future__ import annotations

from standfast.editor import wire_views as views
from standfast.editor.answers import Answer, with_events
from standfast.editor.clients import Attachment, Client
from standfast.editor.core import Core
from standfast.protocol.base import PAGE_DEFAULT, PAGE_MAX
from standfast.protocol.objects import Damage
from standfast.protocol.params import SessionAttachParams
from standfast.protocol.results import SessionAttachResult
from standfast.session.views import Attached


async def attach(core: Core, client: Client, p: SessionAttachParams) -> Answer:
    """Listen first, then look: what happens in between waits until the answer is out."""
    before = client.attachments.get(p.session_id)
    client.attachments[p.session_id] = listening = Attachment()
    size = PAGE_DEFAULT if p.limit is None else min(p.limit, PAGE_MAX)
    try:
        found = await core.sessions.attach(p.session_id, after_seq=p.after_seq, after_hash=p.after_hash, limit=size)
    except BaseException:
        if before is None:
            detach(client, p.session_id)
        else:
            missed, listening.waiting = listening.waiting or [], None
            client.attachments[p.session_id] = before
            if missed:
                core.publisher.streams.events(missed)
        raise
    listening.workspace_uri = found.session.row.workspace_uri

    def then() -> None:
        core.publisher.attached(client, found)

    return Answer(_result(found), then)


def detach(client: Client, session_id: str) -> None:
    """No more events of this session; harmless where none came."""
    client.attachments.pop(session_id, None)


def _result(found: Attached) -> bytes:
    damage = found.damage
    result = SessionAttachResult(
        session=views.session(found.session),
        events=[],
        head_seq=found.head_seq,
        has_more=found.has_more,
        recovery=views.recovery(found.recovery) if found.recovery is not None else None,
        queue=views.queue_items(found.queue),
        queue_held=found.queue_held,
        permissions=[views.permission(row) for row in found.permissions],
        damage=Damage(at_seq=damage.at_seq, reason=damage.reason) if damage is not None else None,
    )
    return with_events(result, found.events)
