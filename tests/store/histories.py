"""Histories that tests store: small ones by hand, one that has everything, and random ones."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from standfast.events.entry import Entry
from standfast.events.types import (
    AssistantChunk,
    AssistantMessage,
    ChangedFile,
    ConflictRaised,
    ConflictResolved,
    ErrorInfo,
    Fact,
    GoalUpdated,
    HunkState,
    Intent,
    MessageDequeued,
    MessageEdited,
    MessageQueued,
    ModelErrorHappened,
    ModelRequest,
    PermissionRequested,
    PermissionResolved,
    PlanStep,
    PlanUpdated,
    RecoveryResolved,
    ResultsShortened,
    RunFinished,
    RunStarted,
    SeenFile,
    SessionArchived,
    SessionCreated,
    SessionRebound,
    SessionUpdated,
    SummaryCreated,
    Target,
    TextContent,
    ToolCall,
    ToolOutput,
    ToolRecovery,
    ToolResult,
    ToolStarted,
    Usage,
    UserMessage,
)

W = "file:///w"
Pair = tuple[str | None, Fact]


class SteppingClock:
    """Each look is a millisecond later."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def entry(session_id: str, *facts: Fact, run_id: str | None = None) -> Entry:
    return Entry(session_id, [(run_id, fact) for fact in facts])


def created(uri: str = W, title: str = "") -> SessionCreated:
    return SessionCreated(workspace_uri=uri, title=title)


def said(message_id: str = "msg_1", text: str = "fix it") -> UserMessage:
    content = [TextContent(text=text)]
    return UserMessage(message_id=message_id, client_message_id=f"client {message_id}", content=content)


def queued(message_id: str, run_id: str, text: str = "later") -> MessageQueued:
    content = [TextContent(text=text)]
    return MessageQueued(
        message_id=message_id, client_message_id=f"client {message_id}", run_id=run_id, content=content
    )


def started(trigger: str = "message", resumes: str | None = None) -> RunStarted:
    return RunStarted.model_validate({"worker_id": "w", "boot_id": "b", "trigger": trigger, "resumes_run_id": resumes})


def call(call_id: str = "call_1", tool: str = "write_file") -> ToolCall:
    return ToolCall(call_id=call_id, provider_call_id=f"toolu {call_id}", tool=tool, args={"path": "a.py"})


def result(call_id: str = "call_1", content: str = "done", **more: object) -> ToolResult:
    return ToolResult.model_validate({"call_id": call_id, "status": "ok", "content": content} | more)


def whole_history() -> list[Pair]:
    """One session in which every type of event occurs."""
    r1: list[Fact] = [
        said(),
        started(),
        ModelRequest(attempt=1, model="m"),
        ModelErrorHappened(attempt=1, reason="Overloaded", message="529", retry_after_ms=500),
        AssistantChunk(attempt=2, offset=0, text="I will "),
        AssistantChunk(attempt=2, offset=7, text="write."),
        AssistantMessage(
            blocks=[
                {"type": "thinking", "thinking": "…", "signature": "s"},
                {"type": "text", "text": "I will write.", "citations": None},
            ],
            stop_reason="tool_use",
            usage=Usage(input_tokens=10, output_tokens=3),
        ),
        call(),
        PermissionRequested(
            call_id="call_1", digest="d", summary="Write a.py", files=[ChangedFile(uri="file:///w/a.py", kind="update")]
        ),
        PermissionResolved(call_id="call_1", decision="allowSession", by="c", digest="d", allow_key="edit a.py"),
        ToolStarted(
            call_id="call_1",
            intents=[
                Intent.model_validate({"kind": "file", "uri": "file:///w/a.py", "path": "a.py", "beforeVersion": None})
            ],
            operation_id="op_1",
        ),
        ToolOutput(call_id="call_1", offset=0, text="…"),
        result(
            files=[ChangedFile(uri="file:///w/a.py", kind="update")],
            seen=[SeenFile(path="a.py", version="v1", whole=True), SeenFile(path="gone.py", version=None, whole=True)],
        ),
        PlanUpdated(goal="g", steps=[PlanStep(text="one", status="completed"), PlanStep(text="two", status="pending")]),
        call("call_2", "apply_patch"),
        ToolStarted(call_id="call_2", intents=[Intent.model_validate({"kind": "file", "uri": "file:///w/b.py"})]),
        ToolRecovery(call_id="call_2", status="uncertain"),
        RunFinished(status="interrupted", error=ErrorInfo(reason="DaemonDied", message="killed")),
        ToolRecovery(
            call_id="call_2",
            status="partial",
            targets=[
                Target(uri="file:///w/b.py", verdict="applied"),
                Target(uri="file:///w/c.py", verdict="not_applied"),
            ],
            evidence="1 of 2 files is written.",
        ),
    ]
    after: list[Pair] = [
        ("run_1", RecoveryResolved(call_id="call_2", action="complete", verdict="applied")),
        (None, queued("msg_2", "run_2", "and then")),
        (None, queued("msg_3", "run_3", "or this")),
        (None, MessageEdited(message_id="msg_3", text="or that", position=0)),
        (None, MessageDequeued(message_id="msg_2", reason="removed")),
        (None, MessageDequeued(message_id="msg_3", reason="started")),
        ("run_3", said("msg_3", "or that")),
        ("run_3", started("queue")),
        ("run_3", call("call_3", "apply_patch")),
        (
            "run_3",
            ConflictRaised(
                conflict_id="conf_1",
                call_id="call_3",
                uri="file:///w/a.py",
                path="a.py",
                reason="ambiguous",
                hunks=[HunkState(index=0, state="conflict", candidate_lines=[3, 9])],
            ),
        ),
        ("run_3", ConflictResolved(conflict_id="conf_1", action="keep")),
        ("run_3", result("call_3", status="error", reason="PATCH_CONFLICT", exit_code=1)),
        ("run_3", SummaryCreated(through_seq=5, text="so far")),
        ("run_3", ResultsShortened(through_seq=4)),
        ("run_3", RunFinished(status="succeeded", usage=Usage(input_tokens=5))),
        (None, GoalUpdated(goal={"objective": "o"})),
        (None, GoalUpdated(goal=None)),
        (None, SessionUpdated(title="t", queue_held=False)),
        (None, SessionRebound(workspace_uri="file:///v", from_uri=W)),
        (None, SessionArchived()),
    ]
    return [(None, created()), *(("run_1", fact) for fact in r1), *after]


def random_history() -> st.SearchStrategy[list[Pair]]:
    """Any events in any order, about few ids, so that they meet: logs of crashes, of bugs, of strangers."""
    calls, runs, messages = (st.sampled_from([f"{kind}_{n}" for n in range(3)]) for kind in ("call", "run", "msg"))
    verdicts = st.sampled_from(["not_applied", "applied", "partial", "diverged", "running", "finished", "unknown"])
    texts = st.text(max_size=5)
    facts: Sequence[st.SearchStrategy[Fact]] = [
        st.builds(said, messages, texts),
        st.builds(queued, messages, runs, texts),
        st.builds(MessageEdited, message_id=messages, text=st.none() | texts, position=st.none() | st.integers(-1, 3)),
        st.builds(MessageDequeued, message_id=messages, reason=st.sampled_from(["started", "removed"])),
        st.builds(started, st.sampled_from(["message", "queue", "resume"]), st.none() | runs),
        st.builds(
            RunFinished,
            status=st.sampled_from(["succeeded", "failed", "cancelled", "interrupted"]),
            usage=st.builds(Usage, input_tokens=st.integers(0, 9)),
        ),
        st.builds(
            AssistantMessage,
            blocks=st.just([]),
            stop_reason=st.none(),
            usage=st.builds(Usage, output_tokens=st.integers(0, 9)),
        ),
        st.builds(call, calls),
        st.builds(PermissionRequested, call_id=calls, digest=texts, summary=texts),
        st.builds(
            PermissionResolved,
            call_id=calls,
            decision=st.sampled_from(["allow", "deny", "allowSession", "expired"]),
            by=st.just("c"),
            allow_key=st.none() | texts,
        ),
        st.builds(ToolStarted, call_id=calls),
        st.builds(
            result,
            calls,
            texts,
            seen=st.lists(st.builds(SeenFile, path=texts, version=st.none() | texts, whole=st.booleans()), max_size=2),
        ),
        st.builds(ToolRecovery, call_id=calls, status=verdicts | st.just("uncertain"), evidence=texts),
        st.builds(
            RecoveryResolved,
            call_id=calls,
            action=st.sampled_from(["keep", "complete", "undo", "dismiss"]),
            verdict=verdicts,
        ),
        st.builds(ConflictRaised, conflict_id=messages, call_id=calls, uri=texts, reason=texts),
        st.builds(ConflictResolved, conflict_id=messages, action=texts),
        st.builds(SessionUpdated, title=st.none() | texts, queue_held=st.none() | st.booleans()),
        st.builds(SummaryCreated, through_seq=st.integers(0, 9), text=texts),
        st.builds(ResultsShortened, through_seq=st.integers(0, 9)),
        st.builds(GoalUpdated, goal=st.none() | st.dictionaries(texts, texts | st.integers())),
    ]
    return st.lists(st.tuples(st.none() | runs, st.one_of(facts)), max_size=30)
