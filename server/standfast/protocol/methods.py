"""THE table: every method beyond LSP that crosses the wire, in one list (design.md "Wire, version 1"). START HERE.

To add a method: a row here, a function in `editor/handlers*`, then `python protocol-spec/generate.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from standfast.protocol import notices, objects, params, results
from standfast.protocol.base import Wire


@dataclass(frozen=True, slots=True)
class Method:
    """One method. `serialize_on` "session": requests of one connection that name the same session (or, where they name
    none, the same run, call or conflict) are handled in the order in which they came; all others run side by side.
    `errors`: reasons that are particular to it; `StoreReadOnly`, `StorageFull` and -32602 can come from any that writes.
    """

    name: str
    kind: Literal["request", "notification"]
    direction: Literal["clientToServer", "serverToClient"]
    params: type[Wire]
    result: type[Wire] | None
    doc: str
    errors: tuple[str, ...] = ()
    serialize_on: Literal["session", "none"] = "none"
    reads: bool = False
    """It changes nothing, so that `$/cancelRequest` may stop it half way; what changes something is carried to its end."""
    stops: bool = False
    """It changes something whole or not at all, so that `$/cancelRequest`, or the end of the connection, may stop it too."""
    since: int = 1
    stability: Literal["stable", "proposed"] = "stable"


def _read(verb: str, takes: type[Wire], gives: type[Wire], doc: str, *errors: str) -> Method:
    """A request of the client that changes nothing."""
    return Method(f"standfast/{verb}", "request", "clientToServer", takes, gives, doc, errors, reads=True)


def _do(verb: str, takes: type[Wire], gives: type[Wire], doc: str, *errors: str) -> Method:
    """A request of the client that waits for no other."""
    return Method(f"standfast/{verb}", "request", "clientToServer", takes, gives, doc, errors)


def _change(verb: str, takes: type[Wire], gives: type[Wire], doc: str, *errors: str) -> Method:
    """A request of the client that is handled in order with the others of its session."""
    return Method(f"standfast/{verb}", "request", "clientToServer", takes, gives, doc, errors, serialize_on="session")


def _stoppable(verb: str, takes: type[Wire], gives: type[Wire], doc: str, *errors: str) -> Method:
    """A long request of the client that waits for no other and leaves nothing where it is stopped."""
    return Method(f"standfast/{verb}", "request", "clientToServer", takes, gives, doc, errors, stops=True)


def _tell(verb: str, takes: type[Wire], doc: str) -> Method:
    """A notification of the daemon."""
    return Method(f"standfast/{verb}", "notification", "serverToClient", takes, None, doc)


_NO_SESSION = "SessionNotFound"
_NO_RUN = "RunNotFound"
_NO_CALL = "CallNotFound"
_NO_CONFLICT = "ConflictNotFound"
_WORKSPACE = ("WorkspaceNotFound", "WorkspaceMoved", "WorkspaceReplaced")

_TABLE = (
    # -- sessions --
    _read(
        "session/list",
        params.SessionListParams,
        results.SessionListResult,
        "List sessions. With `workspaceUri` also those whose moved folder seems to be this one, and those of other worktrees.",
        "WorkspaceNotFound",
        "CursorInvalid",
    ),
    _do(
        "session/create",
        params.SessionCreateParams,
        results.SessionResult,
        "Create a session bound to a folder. Nothing is sent to the model.",
        "WorkspaceNotFound",
    ),
    _change(
        "session/attach",
        params.SessionAttachParams,
        results.SessionAttachResult,
        "Get the history, what is open, and from then on every event live.",
        _NO_SESSION,
    ),
    _change(
        "session/detach", params.SessionIdParams, results.EmptyResult, "Get no more events of a session.", _NO_SESSION
    ),
    _read(
        "session/events",
        params.SessionEventsParams,
        results.SessionEventsResult,
        "Read a page of the history.",
        _NO_SESSION,
    ),
    _change(
        "session/update",
        params.SessionUpdateParams,
        results.SessionResult,
        "Change title, status, mode or model.",
        _NO_SESSION,
        "SessionBusy",
    ),
    _change(
        "session/rebind",
        params.SessionRebindParams,
        results.SessionResult,
        "Bind a session to another folder, or confirm the one that is there now.",
        _NO_SESSION,
        "WorkspaceNotFound",
        "SessionBusy",
    ),
    _change(
        "session/fork",
        params.SessionForkParams,
        results.SessionResult,
        "Copy a session up to an event. What is open stays with the original.",
        _NO_SESSION,
        "ActionNotAvailable",
    ),
    _change(
        "session/delete",
        params.SessionIdParams,
        results.EmptyResult,
        "Delete a session and its history for good.",
        _NO_SESSION,
        "SessionBusy",
    ),
    _change(
        "session/compact",
        params.SessionIdParams,
        results.SessionResult,
        "Summarise the history for the model now. The history itself stays.",
        _NO_SESSION,
        "SessionBusy",
        "KeyMissing",
    ),
    _change(
        "session/export",
        params.SessionExportParams,
        results.EmptyResult,
        "Write session.json, events.jsonl and blobs/ into a folder.",
        _NO_SESSION,
        "ExportFailed",
    ),
    _stoppable(
        "session/import",
        params.SessionImportParams,
        results.SessionResult,
        "Take a session in. A history that is already here adds nothing. Cancelled, it leaves nothing.",
        "ImportFailed",
        "HistoryDamaged",
    ),
    # -- runs --
    _change(
        "run/start",
        params.RunStartParams,
        results.RunStartResult,
        "Send a message: it starts a run, or waits in the queue while one runs.",
        _NO_SESSION,
        *_WORKSPACE,
        "KeyMissing",
        "ActionNotAvailable",
    ),
    _change(
        "run/steer",
        params.RunSteerParams,
        results.EmptyResult,
        "Say something to the running run; it is put in after the current tool call.",
        _NO_RUN,
        "ActionNotAvailable",
    ),
    _do(
        "run/cancel",
        params.RunIdParams,
        results.RunResult,
        "Stop a run, or take a queued one away. What has happened stays. A run that has ended stays as it is.",
        _NO_RUN,
    ),
    _change(
        "run/resume",
        params.RunResumeParams,
        results.RunStartResult,
        "Go on with an interrupted or failed run, in a new run. Pressed twice, the same new run.",
        _NO_RUN,
        "ActionNotAvailable",
        "RunKeepsCrashing",
        *_WORKSPACE,
    ),
    _change(
        "run/undo",
        params.RunIdParams,
        results.RunUndoResult,
        "Put back what a run changed, where the files are still as it left them.",
        _NO_RUN,
        "ActionNotAvailable",
        "SessionBusy",
    ),
    _read(
        "run/list",
        params.RunListParams,
        results.RunListResult,
        "List runs, with statistics.",
        _NO_SESSION,
        "WorkspaceNotFound",
        "CursorInvalid",
    ),
    # -- the queue --
    _read("queue/list", params.SessionIdParams, results.QueueResult, "The messages that wait.", _NO_SESSION),
    _change(
        "queue/edit",
        params.QueueEditParams,
        results.QueueResult,
        "Change the text of a queued message.",
        _NO_SESSION,
        "MessageNotFound",
    ),
    _change(
        "queue/move",
        params.QueueMoveParams,
        results.QueueResult,
        "Give a queued message another place.",
        _NO_SESSION,
        "MessageNotFound",
    ),
    _change(
        "queue/remove",
        params.QueueRemoveParams,
        results.QueueResult,
        "Take a message out of the queue.",
        _NO_SESSION,
        "MessageNotFound",
    ),
    _change(
        "queue/resume",
        params.SessionIdParams,
        results.QueueResult,
        "Let a held queue go on.",
        _NO_SESSION,
        *_WORKSPACE,
    ),
    # -- recovery and conflicts --
    _read(
        "recovery/get",
        params.SessionIdParams,
        results.RecoveryResult,
        "What a crash left open, and what checking found.",
        _NO_SESSION,
    ),
    _change(
        "recovery/resolve",
        params.RecoveryResolveParams,
        results.CallResult,
        "Settle a call. `complete` never runs a command again.",
        _NO_CALL,
        "ActionNotAvailable",
        "FileChanged",
    ),
    _read(
        "conflict/get",
        params.ConflictIdParams,
        results.ConflictGetResult,
        "The texts of a refused write.",
        _NO_CONFLICT,
    ),
    _change(
        "conflict/resolve",
        params.ConflictResolveParams,
        results.ConflictResult,
        "Settle a refused write. `keep` and `dismiss` change no byte; `retry` starts a run that tells the model.",
        _NO_CONFLICT,
        "ActionNotAvailable",
        "FileChanged",
    ),
    _read(
        "diff/get",
        params.DiffGetParams,
        results.DiffGetResult,
        "The files of a call, a conflict or a run, as whole texts before and after.",
        _NO_CALL,
        _NO_CONFLICT,
        _NO_RUN,
    ),
    # -- the rest --
    _read(
        "transcript/get",
        params.SessionIdParams,
        results.TranscriptResult,
        "The session as text; also served as the document `standfast:/session/<sessionId>`.",
        _NO_SESSION,
    ),
    _change("goal/set", params.GoalSetParams, results.GoalResult, "Give a session a goal.", _NO_SESSION),
    _change(
        "goal/update",
        params.GoalUpdateParams,
        results.GoalResult,
        "Pause, resume, complete or change the goal.",
        _NO_SESSION,
        "ActionNotAvailable",
    ),
    _read("goal/get", params.SessionIdParams, results.GoalResult, "The goal and what was used for it.", _NO_SESSION),
    _change("goal/clear", params.SessionIdParams, results.GoalResult, "Take the goal away.", _NO_SESSION),
    _read(
        "message/history",
        params.MessageHistoryParams,
        results.MessageHistoryResult,
        "What the person wrote, over all sessions.",
        "WorkspaceNotFound",
    ),
    _read(
        "workspace/files",
        params.WorkspaceFilesParams,
        results.WorkspaceFilesResult,
        "Files to mention in a message.",
        "WorkspaceNotFound",
    ),
    _do(
        "workspace/trust",
        params.WorkspaceTrustParams,
        results.EmptyResult,
        "Trust a folder's own hooks and settings, or no longer.",
        "WorkspaceNotFound",
        "FileChanged",
    ),
    _do(
        "credentials/set",
        params.CredentialsSetParams,
        results.EmptyResult,
        "Store the key of a model's service, readable by this user only; null removes it.",
        "KeyInvalid",
        "CredentialsNotUsable",
    ),
    _read(
        "daemon/status",
        params.EmptyParams,
        results.DaemonStatusResult,
        "The daemon about itself. Reads nothing outside; for the command line and `:checkhealth`.",
    ),
    # -- from the daemon --
    Method(
        "standfast/permission/request",
        "request",
        "serverToClient",
        objects.Permission,
        results.PermissionAnswer,
        "May this be done? Asked of each client that attaches until one answers; an error is no answer.",
    ),
    _tell("event", notices.EventNotice, "An event of an attached session was stored."),
    _tell("delta", notices.DeltaNotice, "Text streams in; the event with it follows."),
    _tell(
        "session/changed",
        notices.SessionChangedNotice,
        "A session of an open folder changed, or any one, where no folder is open.",
    ),
    _tell(
        "session/deleted",
        notices.SessionDeletedNotice,
        "An attached session, or one of an open folder, was deleted (any one, where no folder is open); no event of it follows.",
    ),
    _tell(
        "attention/changed", notices.AttentionChangedNotice, "What a person must look at changed, in an open folder."
    ),
    _tell("permission/resolved", notices.PermissionResolvedNotice, "A question is settled."),
    _tell("daemon/changed", notices.DaemonChangedNotice, "The daemon's own state changed."),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Name → method, in the order of the reference page."""

REQUESTS: dict[str, Method] = {m.name: m for m in _TABLE if m.direction == "clientToServer"}
"""What a client may ask; all are requests."""

COMMANDS: dict[str, str] = {
    "standfast.recovery.resolve": "standfast/recovery/resolve",
    "standfast.conflict.resolve": "standfast/conflict/resolve",
    "standfast.run.resume": "standfast/run/resume",
    "standfast.run.undo": "standfast/run/undo",
    "standfast.session.rebind": "standfast/session/rebind",
    "standfast.diff.show": "standfast/diff/get",
    "standfast.session.create": "standfast/session/create",
    "standfast.run.start": "standfast/run/start",
    "standfast.run.cancel": "standfast/run/cancel",
    "standfast.workspace.trust": "standfast/workspace/trust",
}
"""`workspace/executeCommand`: command → the method whose params `arguments[0]` holds (design.md "Commands")."""
