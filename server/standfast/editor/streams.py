"""Stored events and streamed text to the clients that follow a session (design.md "Paging", "Streamed text").

Events: each once, in order, none lost; a client that cannot take them loses its connection. Streamed text: joined for each client
and, for one that lags, left out, since the event with it follows.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from standfast.editor.clients import Attachment, Client, Clients
from standfast.events.types import AssistantChunk, Recorded, ToolOutput
from standfast.protocol.notices import DeltaNotice

COALESCE_S = 0.030
LAG = 1024 * 1024
"""Bytes a client may be behind before streamed text waits for it."""
DELTAS_MAX = 256 * 1024
"""UTF-16 units of streamed text kept for a client that lags."""

_Source = tuple[str, str, int | None, str | None]
"""(session, run, attempt, call)"""


@dataclass(slots=True)
class _Joined:
    """Text that waits: one piece without gaps."""

    offset: int
    end: int
    parts: list[str]


@dataclass(slots=True)
class _Pending:
    """What waits for one client."""

    joined: dict[_Source, _Joined] = field(default_factory=dict[_Source, _Joined])
    units: int = 0
    timer: asyncio.TimerHandle | None = None


class Streams:
    """Delivers to the clients of one daemon. `events` and `deltas` are the journal's callbacks: they never wait."""

    def __init__(self, clients: Clients, *, coalesce_s: float = COALESCE_S) -> None:
        self._clients = clients
        self._coalesce_s = coalesce_s
        self._pending: dict[int, _Pending] = {}

    def events(self, events: list[Recorded]) -> None:
        """Stored events of one session."""
        followers = self._clients.attached(events[0].session_id)
        if not followers:
            return
        bodies = [(event, _body(event)) for event in events]
        for client in followers:
            attachment = client.attachments[events[0].session_id]
            if attachment.waiting is not None:
                attachment.waiting.extend(events)
            else:
                self._flush(client, events[0].session_id)
                _deliver(client, attachment, bodies)

    def answered(self, client: Client, session_id: str, head_seq: int) -> None:
        """The answer to attach is out: what came meanwhile and is not in it follows now."""
        attachment = client.attachments.get(session_id)
        if attachment is None or attachment.waiting is None:
            return
        waiting, attachment.waiting = attachment.waiting, None
        attachment.sent_seq = head_seq
        _deliver(client, attachment, [(event, _body(event)) for event in waiting])

    def deltas(self, events: list[Recorded]) -> None:
        """Streamed text that is no lasting event yet."""
        for client in self._clients.attached(events[0].session_id):
            pending = self._pending.setdefault(id(client), _Pending())
            for event in events:
                _join(client, pending, event)
            if pending.timer is None:
                self._send_or_wait(client, pending)

    def left(self, client: Client) -> None:
        """The client is gone."""
        pending = self._pending.pop(id(client), None)
        if pending is not None and pending.timer is not None:
            pending.timer.cancel()

    def _send_or_wait(self, client: Client, pending: _Pending) -> None:
        """Send at once what comes after a pause; then collect for a moment."""
        if client.outbox.held <= LAG:
            _send(client, pending, None)
        pending.timer = asyncio.get_running_loop().call_later(self._coalesce_s, self._tick, client, pending)

    def _tick(self, client: Client, pending: _Pending) -> None:
        pending.timer = None
        if pending.joined and not client.gone:
            self._send_or_wait(client, pending)

    def _flush(self, client: Client, session_id: str) -> None:
        """Text goes before the event that holds it."""
        pending = self._pending.get(id(client))
        if pending is not None and pending.joined and client.outbox.held <= LAG:
            _send(client, pending, session_id)


def _body(event: Recorded) -> bytes:
    """Params of `standfast/event`: the stored text, not encoded again. Ids hold nothing that JSON would escape."""
    return f'{{"sessionId":"{event.session_id}","event":{event.wire}}}'.encode()


def _deliver(client: Client, attachment: Attachment, bodies: list[tuple[Recorded, bytes]]) -> None:
    for event, body in bodies:
        if event.seq > attachment.sent_seq:
            attachment.sent_seq = event.seq
            client.notify_json("standfast/event", body)


def _join(client: Client, pending: _Pending, event: Recorded) -> None:
    fact = event.fact
    if isinstance(fact, AssistantChunk):
        source: _Source = (event.session_id, event.run_id or "", fact.attempt, None)
    elif isinstance(fact, ToolOutput):
        source = (event.session_id, event.run_id or "", None, fact.call_id)
    else:
        return
    units = utf16_units(fact.text)
    joined = pending.joined.get(source)
    if joined is not None and joined.end != fact.offset:
        _send(client, pending, event.session_id)
        joined = None
    if pending.units + units > DELTAS_MAX:
        pending.joined.clear()  # it lags: the events bring this text
        pending.units = 0
        joined = None
    if joined is None:
        joined = pending.joined[source] = _Joined(fact.offset, fact.offset, [])
    joined.parts.append(fact.text)
    joined.end += units
    pending.units += units


def _send(client: Client, pending: _Pending, session_id: str | None) -> None:
    """Send what waits, of one session or of all that this client still follows; a session being attached waits on."""
    for source in [s for s in pending.joined if session_id in (None, s[0])]:
        attachment = client.attachments.get(source[0])
        if attachment is not None and attachment.waiting is not None:
            continue
        joined = pending.joined.pop(source)
        pending.units -= joined.end - joined.offset
        if attachment is not None:
            session, run, attempt, call = source
            notice = DeltaNotice(
                session_id=session,
                run_id=run,
                attempt=attempt,
                call_id=call,
                offset=joined.offset,
                text="".join(joined.parts),
            )
            client.notify("standfast/delta", notice)


def utf16_units(text: str) -> int:
    """Length as UTF-16 counts it."""
    return len(text) if text.isascii() else len(text) + sum(1 for c in text if ord(c) > 0xFFFF)
