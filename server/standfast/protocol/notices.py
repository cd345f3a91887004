"""Params of what the daemon tells its clients, and the capability that client and daemon show each other."""

from __future__ import annotations

from typing import Literal

from standfast.protocol.base import Maybe, Wire
from standfast.protocol.objects import AttentionItem, Degraded, Event, Session


class EventNotice(Wire, frozen=True):
    """One stored event of an attached session, in order, once."""

    session_id: str
    event: Event


class DeltaNotice(Wire, frozen=True):
    """Streamed text that is not an event yet: of the model (`attempt`) or of a call's output (`callId`).

    `offset` counts UTF-16 units, so that a client that rejoins can join text without doubling it.
    """

    session_id: str
    run_id: str
    attempt: Maybe[int] = None
    call_id: Maybe[str] = None
    offset: int
    text: str


class SessionChangedNotice(Wire, frozen=True):
    """A session was created or its facts changed."""

    session: Session


class SessionDeletedNotice(Wire, frozen=True):
    """A session is gone for good, with its history: whoever shows it, or its name, takes it off the screen."""

    session_id: str


class AttentionChangedNotice(Wire, frozen=True):
    """All that a person must look at in one folder; replaces what was told before."""

    workspace_uri: str
    items: list[AttentionItem]


class PermissionResolvedNotice(Wire, frozen=True):
    """The question was answered, by whomever, or has expired: take it off the screen."""

    call_id: str
    decision: Literal["allow", "deny", "allowSession", "expired"]


class DaemonChangedNotice(Wire, frozen=True):
    """What does not work as it should; an empty list: all is well."""

    degraded: list[Degraded]


class ClientCapability(Wire, frozen=True):
    """`capabilities.experimental.standfast` of the client. Without it, it is a plain LSP client."""

    protocol_version: int
    client_id: Maybe[str] = None


class ServerCapability(Wire, frozen=True):
    """`capabilities.experimental.standfast` of the answer to `initialize`."""

    protocol_version: int
    daemon_version: str
    sandbox: str
