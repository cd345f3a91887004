"""Params of the requests that a client sends. One class a method; methods that take the same share one."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from standfast.protocol.base import Id, Limit, Maybe, Query, Said, Seq, Wire
from standfast.protocol.objects import (
    ConflictAction,
    RecoveryAction,
    RunStatus,
    SessionMode,
    SessionStatus,
    TextInput,
)


class EmptyParams(Wire, frozen=True):
    """`{}`: nothing to say."""


class SessionListParams(Wire, frozen=True):
    """Without `status`, archived sessions are left out. `query` looks in titles."""

    workspace_uri: Maybe[str] = None
    status: Maybe[SessionStatus] = None
    query: Maybe[Query] = None
    cursor: Maybe[str] = None
    limit: Maybe[Limit] = None


class SessionCreateParams(Wire, frozen=True):
    """`mode` is `ask` and `model` the user's configured one, if not given."""

    workspace_uri: str
    title: Maybe[str] = None
    mode: Maybe[SessionMode] = None
    model: Maybe[str] = None


class SessionIdParams(Wire, frozen=True):
    """Names a session."""

    session_id: Id


class SessionAttachParams(Wire, frozen=True):
    """`afterSeq` and `afterHash`: the last event that the client holds."""

    session_id: Id
    after_seq: Maybe[Seq] = None
    after_hash: Maybe[str] = None
    limit: Maybe[Limit] = None


class SessionEventsParams(Wire, frozen=True):
    """A page after `afterSeq`, or before `beforeSeq`; with neither the newest page. Always ascending."""

    session_id: Id
    after_seq: Maybe[Seq] = None
    before_seq: Maybe[Seq] = None
    limit: Maybe[Limit] = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if self.after_seq is not None and self.before_seq is not None:
            raise ValueError("afterSeq and beforeSeq exclude each other")
        return self


class SessionUpdateParams(Wire, frozen=True):
    """What is not given stays as it is."""

    session_id: Id
    title: Maybe[str] = None
    status: Maybe[SessionStatus] = None
    mode: Maybe[SessionMode] = None
    model: Maybe[str] = None


class SessionRebindParams(Wire, frozen=True):
    """The folder that the session works in from now on."""

    session_id: Id
    workspace_uri: str


class SessionForkParams(Wire, frozen=True):
    """`atSeq`: the last event that the copy has; the newest if not given."""

    session_id: Id
    at_seq: Maybe[Seq] = None


class SessionExportParams(Wire, frozen=True):
    """`directoryUri`: where session.json, events.jsonl and blobs/ are written."""

    session_id: Id
    directory_uri: str


class SessionImportParams(Wire, frozen=True):
    """`force`: take in a history whose hashes do not match. `workDoneToken`: `$/progress` says how many events were taken in."""

    uri: str
    force: Maybe[bool] = None
    work_done_token: Maybe[int | str] = None


class RunStartParams(Wire, frozen=True):
    """Exactly one of `text` and `input`. The same `clientMessageId` in a session is one message, across restarts."""

    session_id: Id
    text: Maybe[str] = None
    input: Maybe[list[TextInput]] = None
    client_message_id: Id

    @model_validator(mode="after")
    def _one_message(self) -> Self:
        if (self.text is None) == (self.input is None):
            raise ValueError("give text or input, one of them")
        said = self.text if self.input is None else "".join(part.text for part in self.input)
        if not (said or "").strip():
            raise ValueError("the message is empty")
        return self


class RunSteerParams(Wire, frozen=True):
    """`text` is put in after the current tool call."""

    run_id: Id
    text: Said
    client_message_id: Id


class RunIdParams(Wire, frozen=True):
    """Names a run."""

    run_id: Id


class RunResumeParams(Wire, frozen=True):
    """`confirm`: go on although the run's chain has crashed three times."""

    run_id: Id
    confirm: Maybe[bool] = None


class RunListParams(Wire, frozen=True):
    """Selects runs; newest first."""

    workspace_uri: Maybe[str] = None
    session_id: Maybe[Id] = None
    status: Maybe[RunStatus] = None
    cursor: Maybe[str] = None
    limit: Maybe[Limit] = None


class QueueEditParams(Wire, frozen=True):
    """Another text for a queued message."""

    session_id: Id
    message_id: Id
    text: Said


class QueueMoveParams(Wire, frozen=True):
    """`position` counts from 0."""

    session_id: Id
    message_id: Id
    position: Seq


class QueueRemoveParams(Wire, frozen=True):
    """Takes a message out of the queue."""

    session_id: Id
    message_id: Id


class RecoveryResolveParams(Wire, frozen=True):
    """An action that does not fit gives `ActionNotAvailable`."""

    call_id: Id
    action: RecoveryAction


class ConflictIdParams(Wire, frozen=True):
    """Names a conflict."""

    conflict_id: Id


class DiffGetParams(Wire, frozen=True):
    """Exactly one of the three ids; `uri` selects one file."""

    call_id: Maybe[Id] = None
    conflict_id: Maybe[Id] = None
    run_id: Maybe[Id] = None
    uri: Maybe[str] = None

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if [self.call_id, self.conflict_id, self.run_id].count(None) != 2:
            raise ValueError("give one of callId, conflictId, runId")
        return self


class ConflictResolveParams(Wire, frozen=True):
    """`line` (from 1) goes with `applyAt`: one of the hunk's `candidateLines`, in the file as it is now.

    With `version` (as conflict/get gives it) a line that was counted in other content is refused.
    """

    conflict_id: Id
    action: ConflictAction
    line: Maybe[Limit] = None
    version: Maybe[str] = None

    @model_validator(mode="after")
    def _line_where_needed(self) -> Self:
        if (self.action == "applyAt") != (self.line is not None):
            raise ValueError("line goes with applyAt, and only with it")
        return self


class GoalSetParams(Wire, frozen=True):
    """`tokenBudget`: where the harness stops."""

    session_id: Id
    objective: Said
    token_budget: Maybe[Limit] = None


class GoalUpdateParams(Wire, frozen=True):
    """What is not given stays as it is."""

    session_id: Id
    objective: Maybe[Said] = None
    token_budget: Maybe[Limit] = None
    status: Maybe[Literal["active", "paused", "blocked", "complete"]] = None


class MessageHistoryParams(Wire, frozen=True):
    """Over all sessions, newest first."""

    workspace_uri: Maybe[str] = None
    query: Maybe[Query] = None
    limit: Maybe[Limit] = None


class WorkspaceFilesParams(Wire, frozen=True):
    """For @-completion: files of the folder that match `query`, gitignore respected."""

    workspace_uri: str
    query: Query
    limit: Maybe[Limit] = None


class WorkspaceTrustParams(Wire, frozen=True):
    """A folder is untrusted until trusted: its own files then act on nothing. Trust is for what is in those files now."""

    workspace_uri: str
    trusted: bool
    version: Maybe[str] = None
    """As the code action of a lapsed trust gives it: refused where something else would act by now."""


class CredentialsSetParams(Wire, frozen=True):
    """`key` null removes it."""

    provider: Literal["anthropic"]
    key: str | None
