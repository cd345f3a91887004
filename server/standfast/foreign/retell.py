"""Makes our facts of another agent's history (R3.6, design.md "Events"). Pure: items in, facts out, ids from the caller.

Each message of the person's begins a run. A call that has no result when its run is over is `uncertain`, verdict `unknown`: nobody
can look any more. Nothing is invented: no cost where none was written, no result where there was none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from standfast.clock import Ids
from standfast.events.types import (
    AssistantMessage,
    ChangedFile,
    ErrorInfo,
    Fact,
    Intent,
    PlanUpdated,
    RunFinished,
    RunStarted,
    SummaryCreated,
    Target,
    TextContent,
    ToolCall,
    ToolRecovery,
    ToolResult,
    ToolStarted,
    Usage,
    UserMessage,
)
from standfast.foreign.naming import plan_steps, translated
from standfast.foreign.spoken import (
    NOT_COUNTED,
    Answered,
    Began,
    Call,
    Changed,
    Ended,
    Happened,
    Item,
    Planned,
    Replied,
    Said,
    Summed,
)

FOREIGN = "foreign"
"""The kind of an intent that another agent had: there is nothing that could check it."""
WORKER = "import"


@dataclass(slots=True)
class _Reply:
    """A reply that is still coming in."""

    text: list[str] = field(default_factory=list[str])
    calls: list[Call] = field(default_factory=list[Call])
    usage: Usage = NOT_COUNTED
    model: str | None = None


@dataclass(slots=True)
class _Made:
    """A call of ours, made of one of theirs."""

    call_id: str
    tool: str
    targets: list[Target]


def file_uri(path: str) -> str:
    """An absolute path of the other agent's as a file URI."""
    return "file://" + quote(path, safe="/-._~")


class Retelling:
    """The fold. Feed it items; it yields facts as they become certain, so that memory stays small."""

    def __init__(self, began: Began, ids: Ids, first_seq: int) -> None:
        self._began = began
        self._ids = ids
        self._seq = first_seq - 1
        """Of the last fact that was yielded."""
        self._at_ms = began.at_ms
        self._run_id: str | None = None
        self._spoken = False
        self._reply: _Reply | None = None
        self._open: dict[str, _Made] = {}
        self._files: dict[str, Sequence[ChangedFile]] = {}

    def facts(self, items: Iterable[Item]) -> Iterator[Happened]:
        """All facts, in order, the ends of what the file leaves open included."""
        for item in items:
            yield from self._counted(self._take(item))
        yield from self._counted(self._end("interrupted"))

    def _counted(self, facts: Iterator[Fact]) -> Iterator[Happened]:
        for fact in facts:
            self._seq += 1
            yield Happened(self._at_ms, self._run_id, fact)

    def _take(self, item: Item) -> Iterator[Fact]:
        if not isinstance(item, Replied):
            yield from self._flush()
        if not isinstance(item, Changed) and item.at_ms:
            self._at_ms = max(self._at_ms, item.at_ms)
        match item:
            case Said():
                yield from self._said(item.text)
            case Replied():
                yield from self._replied(item)
            case Answered():
                yield from self._answered(item)
            case Changed():
                self._files[item.use_id] = item.files
            case Ended():
                yield from self._end(item.status)
            case Summed():
                yield SummaryCreated(through_seq=self._seq, text=item.text)
            case Planned():
                yield PlanUpdated(goal=item.goal, steps=list(item.steps))
            case Began():
                pass

    # -- runs -----------------------------------------------------------------------------------------------------

    def _said(self, text: str) -> Iterator[Fact]:
        if self._run_id is not None and not self._spoken:
            yield from self._end("interrupted")
        elif self._run_id is not None:
            yield from self._end("interrupted" if self._open else "succeeded")
        yield from self._begin()
        message_id = self._ids.new("msg")
        yield UserMessage(message_id=message_id, client_message_id=message_id, content=[TextContent(text=text)])

    def _begin(self) -> Iterator[Fact]:
        self._run_id, self._spoken = self._ids.new("run"), False
        yield RunStarted(worker_id=WORKER, boot_id="", trigger="message")

    def _end(self, status: str) -> Iterator[Fact]:
        yield from self._flush()
        if self._run_id is None:
            return
        for made in self._open.values():
            yield from self._lost(made)
        if self._open and status == "succeeded":
            status = "interrupted"
        if status == "interrupted" and not self._open and self._spoken:
            status = "succeeded"
        self._open = {}
        error = None
        if status in ("interrupted", "failed"):
            error = ErrorInfo(reason="Interrupted", message=f"{self._began.program} left this run without an end.")
        yield RunFinished.model_validate({"status": status, "error": error})
        self._run_id, self._spoken = None, False

    # -- replies and calls ----------------------------------------------------------------------------------------

    def _replied(self, item: Replied) -> Iterator[Fact]:
        if self._reply is not None and self._reply.calls and item.text:
            yield from self._flush()  # text after calls belongs to the reply after their results
        reply = self._reply = self._reply or _Reply()
        if item.text.strip():
            reply.text.append(item.text)
        reply.calls.extend(item.calls)
        reply.model = item.model or reply.model
        if item.usage != NOT_COUNTED:
            reply.usage = item.usage

    def _flush(self) -> Iterator[Fact]:
        reply, self._reply = self._reply, None
        if reply is None or not (reply.text or reply.calls):
            return
        if self._run_id is None:
            yield from self._begin()
        self._spoken = True
        blocks = [{"type": "text", "text": text} for text in reply.text]
        calls = [(call, *translated(call.name, call.args, self._began.folder)) for call in reply.calls]
        blocks += [{"type": "tool_use", "id": call.use_id, "name": tool, "input": args} for call, tool, args in calls]
        stop = "tool_use" if reply.calls else "end_turn"
        yield AssistantMessage(blocks=blocks, stop_reason=stop, usage=reply.usage, model=reply.model)
        for call, tool, args in calls:
            made = _Made(self._ids.new("call"), tool, self._targets(args))
            self._open[call.use_id] = made
            yield ToolCall(call_id=made.call_id, provider_call_id=call.use_id, tool=tool, args=args)
            intent = Intent.model_validate({"kind": FOREIGN, "program": self._began.program})
            yield ToolStarted(call_id=made.call_id, intents=[intent])
            if tool == "update_plan" and (steps := plan_steps(call.args)):
                yield PlanUpdated(goal=str(args.get("goal", "")), steps=steps)

    def _targets(self, args: dict[str, object]) -> list[Target]:
        if isinstance(args.get("command"), str):
            return [Target(command=str(args["command"]), verdict="unknown")]
        path = args.get("path")
        if isinstance(path, str) and self._began.folder:
            whole = path if path.startswith("/") else f"{self._began.folder.rstrip('/')}/{path}"
            return [Target(uri=file_uri(whole), verdict="unknown")]
        return []

    def _answered(self, item: Answered) -> Iterator[Fact]:
        made = self._open.get(item.use_id)
        if made is None or item.lost:
            return
        del self._open[item.use_id]
        yield ToolResult(
            call_id=made.call_id, status=item.status, content=item.text, exit_code=item.exit_code,
            files=list(self._files.pop(item.use_id, ())),
        )  # fmt: skip

    def _lost(self, made: _Made) -> Iterator[Fact]:
        yield ToolRecovery(call_id=made.call_id, status="uncertain")
        yield ToolRecovery(
            call_id=made.call_id,
            status="unknown",
            targets=made.targets,
            evidence=f"{self._began.program} recorded no result, and nothing that could be checked",
        )
