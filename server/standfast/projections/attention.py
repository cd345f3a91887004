"""What a person must look at, by file and line, from rows alone (design.md "Editor surface", "Diagnostics"). Pure.

One item is one diagnostic. What has no file stands on the session's transcript document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from standfast.projections.recovery_view import left_a_lock, targets_of, verdict_of
from standfast.projections.rows import CallRow, ConflictRow, RunRow, SessionRow

Code = Literal[
    "uncertain-call",
    "partial-write",
    "diverged-file",
    "patch-conflict",
    "file-changed",
    "interrupted-run",
    "permission-needed",
    "history-damaged",
    "trust-lapsed",
]
Severity = Literal["error", "warning", "information"]

_SEVERITY: Mapping[str, Severity] = {
    "interrupted-run": "information",
    "permission-needed": "information",
    "history-damaged": "error",
}

_OF_VERDICT: Mapping[str, Code] = {
    "partial": "partial-write",
    "diverged": "diverged-file",
    "unknown": "uncertain-call",
    "running": "uncertain-call",
}
"""Verdicts that want a person's choice."""

_MEANS: Mapping[str, str] = {
    "applied": "applied: the change is there, whole",
    "not_applied": "not_applied: nothing was changed",
    "partial": "partial: some of the change is there",
    "diverged": "diverged: it is neither what was before nor what was meant",
    "running": "running: it has not ended yet",
    "finished": "finished: it ran to its end",
    "unknown": "unknown: nobody can tell whether it happened",
}

_DEEDS: Mapping[str, str] = {
    "apply_patch": "the patch",
    "edit_file": "the edit",
    "write_file": "the writing of the file",
    "run_command": "the command",
    "undo": "the undoing",
}
"""What a call is to a person; any other is named by its tool."""


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """One matter at one place. `line` counts from 1. At most one of the ids names whose matter it is."""

    code: Code
    session_id: str
    uri: str
    line: int
    message: str
    call_id: str | None = None
    conflict_id: str | None = None
    run_id: str | None = None
    candidates: tuple[int, ...] = ()
    """Lines, from 1, where a refused hunk could go, or nearly."""
    trust: tuple[str, str] | None = None
    """Of a lapsed trust: the folder's URI, and the version of what would act there."""

    @property
    def severity(self) -> Severity:
        """Warning where a person must choose; information where it is enough to know."""
        return _SEVERITY.get(self.code, "warning")


class Damaged(Protocol):
    """Where a history stops being what was written (`store.base.Damage`)."""

    @property
    def at_seq(self) -> int: ...

    @property
    def reason(self) -> str: ...


class Lapsed(Protocol):
    """A trust that holds no more (`session.trust.Lapse`)."""

    @property
    def workspace_uri(self) -> str: ...

    @property
    def changed(self) -> Sequence[tuple[str, str]]: ...

    @property
    def version(self) -> str: ...


def transcript_uri(session_id: str) -> str:
    """The session's transcript document."""
    return f"standfast:/session/{session_id}"


def attention(
    session: SessionRow,
    last_run: RunRow | None,
    recovery_calls: Sequence[CallRow],
    conflicts: Sequence[ConflictRow],
    permissions: Sequence[CallRow],
    damage: Damaged | None = None,
    lapse: Lapsed | None = None,
) -> list[AttentionItem]:
    """All items of one session: the calls of its recovery, its open conflicts and permissions, its history's damage, and what took
    away the trust in its folder."""
    found: list[AttentionItem] = []
    for call in recovery_calls:
        found.extend(_uncertain(session.session_id, call))
    if last_run is not None and last_run.status == "interrupted":
        found.extend(_interrupted(session.session_id, last_run, recovery_calls))
    found.extend(item for conflict in conflicts if conflict.state == "open" for item in _conflict(conflict))
    for call in permissions:
        found.extend(_permission(session.session_id, call))
    if damage is not None:
        found.append(
            AttentionItem(
                "history-damaged",
                session.session_id,
                transcript_uri(session.session_id),
                1,
                f"The history is not what was written from event {damage.at_seq} on: {damage.reason} What is before it is whole; "
                "nothing was deleted. `standfast doctor` says more.",
            )
        )
    if lapse is not None:
        found.extend(_distrusted(session.session_id, lapse))
    return found


def _distrusted(session_id: str, lapse: Lapsed) -> list[AttentionItem]:
    """On each file that changed; on the transcript, where another folder is in the place of the trusted one."""
    after = (
        "Nothing that comes with the folder acts now: no notes or skills, no hooks or filters. "
        "Look at it; a code action trusts the folder again as it is."
    )
    return [
        AttentionItem(
            "trust-lapsed",
            session_id,
            uri or transcript_uri(session_id),
            1,
            f"{f'{name} changed, or is new,' if uri else 'Another folder is in this place'} since you trusted the folder. {after}",
            trust=(lapse.workspace_uri, lapse.version),
        )
        for name, uri in lapse.changed
    ]


def _uncertain(session_id: str, call: CallRow) -> list[AttentionItem]:
    """The call's own matter on each of its targets, if its verdict wants a choice and none was taken; or a lock that it left."""
    code = _OF_VERDICT.get(verdict_of(call)) or ("uncertain-call" if left_a_lock(call) else None)
    if code is None or call.dismissed:
        return []
    return [
        AttentionItem(code, session_id, uri, 1, _says(call, target), call_id=call.call_id)
        for uri, target in _places(session_id, call)
    ]


def _says(call: CallRow, target: Mapping[str, Any]) -> str:
    own = str(target.get("verdict", verdict_of(call)))
    what = _MEANS.get(own, own)
    evidence = f" {call.evidence}" if call.evidence else ""
    interrupted = f"{_sentence(_deed(call))} was interrupted."
    return f"{interrupted} {_named(target)}{what}.{_whole(call, own)}{evidence} Choose a code action to settle it."


def _whole(call: CallRow, own: str) -> str:
    """What became of the call, where that is another verdict than the target's own."""
    verdict = verdict_of(call)
    return "" if own == verdict else f" The call as a whole: {_MEANS.get(verdict, verdict)}."


def _deed(call: CallRow) -> str:
    return _DEEDS.get(call.tool, f"the call of {call.tool}")


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _named(target: Mapping[str, Any]) -> str:
    command = target.get("command")
    return f"“{command}”: " if command else "This file: " if target.get("uri") else ""


def _interrupted(session_id: str, run: RunRow, calls: Sequence[CallRow]) -> list[AttentionItem]:
    """On each target of the run's recovered calls, with the verdict; on the transcript, if it has none."""
    found = [
        AttentionItem(
            "interrupted-run",
            session_id,
            uri,
            1,
            f"A run was interrupted during {_deed(call)}. {_named(target)}"
            f"{_MEANS.get(own, '')}.{_whole(call, own)} It can be resumed.",
            run_id=run.run_id,
        )
        for call in calls
        if call.run_id == run.run_id
        for uri, target in _places(session_id, call)
        for own in [str(target.get("verdict", verdict_of(call)))]
    ]
    if found:
        return found
    text = "A run was interrupted. No call of it is in doubt; nothing runs until you go on. It can be resumed."
    return [AttentionItem("interrupted-run", session_id, transcript_uri(session_id), 1, text, run_id=run.run_id)]


def _places(session_id: str, call: CallRow) -> list[tuple[str, Mapping[str, Any]]]:
    """(uri, target) of everything that the call acted on."""
    targets = targets_of(call) or [{"uri": intent["uri"]} for intent in call.intents if intent.get("uri")]
    found: list[tuple[str, Mapping[str, Any]]] = [
        (str(target.get("uri") or transcript_uri(session_id)), target) for target in targets
    ]
    return found or [(transcript_uri(session_id), {})]


def _conflict(conflict: ConflictRow) -> list[AttentionItem]:
    """A refused write, at each hunk that did not fit (or its nearest candidate); else where anything is known of it."""
    tool = conflict.detail.get("change", {}).get("tool", "")
    whole = conflict.reason in ("FILE_CHANGED", "FILE_NOT_READ") if not tool else tool != "apply_patch"
    code: Code = "file-changed" if whole else "patch-conflict"
    message = (
        conflict.detail.get("message")
        or f"A change to this file was refused ({conflict.reason}); the file is untouched."
    )
    return [
        AttentionItem(
            code,
            conflict.session_id,
            conflict.uri,
            line,
            message,
            conflict_id=conflict.conflict_id,
            candidates=candidates,
        )
        for line, candidates in _hunk_places(conflict.detail.get("hunks", []))
    ]


def _hunk_places(hunks: Sequence[Mapping[str, Any]]) -> list[tuple[int, tuple[int, ...]]]:
    """(line, candidate lines) of the hunks in conflict; of any that says why, where none is; else the first line."""
    stuck = [hunk for hunk in hunks if hunk.get("state") == "conflict"] or [
        hunk for hunk in hunks if hunk.get("reason")
    ]
    places: dict[int, tuple[int, ...]] = {}
    for hunk in stuck:
        candidates = tuple(int(line) for line in hunk.get("candidateLines") or ())
        line = hunk.get("line") or (candidates[0] if candidates else None)
        if line:
            places.setdefault(int(line), candidates)
    return list(places.items()) or [(1, ())]


def _permission(session_id: str, call: CallRow) -> list[AttentionItem]:
    """On each file that the call would touch, else on the transcript."""
    uris = list(dict.fromkeys(str(file["uri"]) for file in call.files if file.get("uri"))) or [
        transcript_uri(session_id)
    ]
    message = f"{_sentence(_deed(call))} waits for your permission: {call.summary or call.tool}"
    return [AttentionItem("permission-needed", session_id, uri, 1, message, call_id=call.call_id) for uri in uris]
