"""The words in which the model is told what became of its calls (R9.4). Pure: facts in, sentences out.

Never a lie, never a guess: each sentence says what was verified, and what is not known. Wording is fixed per fact, so that a
request built again after a restart is the same to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from standfast.events.types import (
    ConflictResolved,
    RecoveryResolved,
    RunFinished,
    ToolRecovery,
    ToolResult,
)

_VERDICTS = {
    "uncertain": "its outcome was lost and has not been verified; it may have happened or not",
    "applied": "verified: it took effect completely",
    "not_applied": "verified: it did not take effect",
    "partial": "verified: it took effect in part",
    "diverged": "verified: what is there now is neither the state before nor the state after it",
    "running": "verified: it is still running",
    "finished": "verified: it ran to its end",
    "unknown": "it was started; whether it took effect could not be determined",
}
_RESOLUTIONS = {
    "complete": "the person completed it; its target is now as the call meant it",
    "undo": "the person undid it; its target is as it was before the call",
    "keep": "the person decided to keep things as they are",
    "dismiss": "the person dismissed the matter and left things as they are",
    "stop": "the person stopped it",
    "verify": "it was verified again",
    "removeLock": "the left-over lock was removed",
}
NEVER_STARTED = "Not carried out: the run was interrupted before this call began. It had no effect."
ARGUMENT_LENGTH = 200
"""Characters of a call's arguments that a line of `<recovery>` shows."""
SHORT_LENGTH = 120
"""Characters of a result that it begins with where it is shortened."""


def result_block(
    use_id: str,
    result: ToolResult | None,
    recovery: ToolRecovery | None,
    resolution: RecoveryResolved | None,
    *,
    started: bool,
) -> dict[str, Any]:
    """The tool_result that answers a tool_use: the stored result, or one made from what is known of the call."""
    if result is not None:
        text = result.content if result.content.strip() else "(no output)"
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": use_id,
            "content": [{"type": "text", "text": text}],
        }
        if result.status != "ok":
            block["is_error"] = True
        return block
    lost = f"No result: this call was interrupted after it had started. {_state(recovery, resolution)}"
    text = lost if started else NEVER_STARTED
    return {"type": "tool_result", "tool_use_id": use_id, "content": [{"type": "text", "text": text}], "is_error": True}


def shortened(call_id: str, result: ToolResult) -> ToolResult:
    """A long result as it is told once it is old: how it began, and how to see it again. It stays whole in the log."""
    began = " ".join(result.content[:SHORT_LENGTH].split())
    again = f'read_result {{"call_id": "{call_id}"}} shows it as it was'
    line = f"[Shortened: {len(result.content)} characters that began with: {began} …; {again}.]"
    return result.model_copy(update={"content": line})


def call_in_words(tool: str, args: dict[str, Any]) -> str:
    """A call of a tool that is not offered (any more), as the model's own words."""
    return f"(I called the tool {tool} with {json.dumps(args, ensure_ascii=False)})"


def result_in_words(tool: str, block: dict[str, Any]) -> dict[str, Any]:
    """The answer to such a call: the same words as in its tool_result, in a text block."""
    text = "\n".join(part["text"] for part in block["content"])
    return {"type": "text", "text": f"<result_of_{tool}>\n{text}\n</result_of_{tool}>"}


def verdict_line(
    tool: str, use_id: str, args: dict[str, Any], recovery: ToolRecovery | None, resolution: RecoveryResolved | None
) -> str:
    """One line of `<recovery>`: which call, on what, and what verification found."""
    shown = json.dumps(args, ensure_ascii=False)
    if len(shown) > ARGUMENT_LENGTH:
        shown = f"{shown[:ARGUMENT_LENGTH]}… ({len(shown)} characters)"
    targets = ""
    if recovery is not None and recovery.targets:
        parts = [f"{target.uri or target.command}: {target.verdict}" for target in recovery.targets]
        targets = f" Targets: {'; '.join(parts)}."
    return f"Call {use_id} ({tool} {shown}): {_state(recovery, resolution)}{targets}"


def _state(recovery: ToolRecovery | None, resolution: RecoveryResolved | None) -> str:
    status = recovery.status if recovery is not None else "uncertain"
    text = f"{status} - {_VERDICTS[status]}."
    if recovery is not None and recovery.evidence:
        text += f" Evidence: {recovery.evidence.rstrip('.')}."
    if resolution is not None:
        text += f" Since then {_RESOLUTIONS[resolution.action]} (now {resolution.verdict})."
    elif status in ("uncertain", "partial", "diverged", "running", "unknown"):
        text += " Check it before anything depends on it; do not repeat it blindly."
    return text


def resolution_line(tool: str, use_id: str, fact: RecoveryResolved) -> str:
    return f"Call {use_id} ({tool}), told of before: {_RESOLUTIONS[fact.action]} (now {fact.verdict})."


def late_result(tool: str, use_id: str, fact: ToolResult) -> str:
    """A result that came after the call had been answered without one."""
    code = "" if fact.exit_code is None else f", exit code {fact.exit_code}"
    return f"Call {use_id} ({tool}), told of before, now has its result ({fact.status}{code}):\n{fact.content}"


def undone(fact: ToolResult) -> str:
    """The person took changes back; what the model remembers of these files is not what is there."""
    files = ", ".join(file.uri for file in fact.files)
    return f"The person undid changes of yours in: {files}. Read a file again before you depend on it."


def run_end(fact: RunFinished, uncertain: Sequence[str]) -> list[str]:
    """What the next run has to know of one that did not end well."""
    if fact.status == "interrupted":
        first = "The previous run was interrupted: the agent's process died. Nothing has run since."
        if not uncertain:
            first += " No call was left without an outcome."
        return [first, *uncertain]
    if fact.status == "cancelled":
        return ["The person stopped the previous run.", *uncertain]
    reason = f" ({fact.error.reason})" if fact.error else ""
    return [f"The previous run failed{reason} and is gone on with.", *uncertain]


def conflict_line(fact: ConflictResolved) -> str | None:
    """What the person did about a refused write; what does not concern the files is not worth telling."""
    match fact.action:
        case "merge":
            return "The person applied the merged version of a write that had been refused; read the file before you change it."
        case "applyAt":
            return "The person applied a refused hunk at a place of their choice; read the file before you change it."
        case "keep":
            return "The person kept their own version against a write that had been refused."
        case "retry":
            return "The person asks you to read the file of the refused write again and to make the change anew."
        case _:
            return None


def recovery_block(news: Sequence[str]) -> str:
    """The `<recovery>` block. Text from outside cannot close it or open another (ATK-56)."""
    lines = "\n".join(
        f"- {line}".replace("<recovery", "&lt;recovery").replace("</recovery", "&lt;/recovery") for line in news
    )
    return f"<recovery>\n{lines}\n</recovery>"


def goal(value: Mapping[str, Any] | None) -> str:
    """The session's goal as it is now, where it changed."""
    if value is None:
        return "<goal>\nThe person took the session's goal away.\n</goal>"
    budget = value.get("tokenBudget")
    limit = f" Its budget is {budget} tokens." if budget is not None else ""
    return f"<goal>\n{value.get('objective')}\nIt is {value.get('status')}.{limit}\n</goal>"


def summary(text: str) -> str:
    return f"<summary>\nWhat happened in this session so far:\n{text}\n</summary>"
