"""A connection as a state machine (issue D, "What must be shown" 1): whatever a client says in whatever order, each request is
answered once, as the state it was sent in demands, or its connection is closed (I10); and the daemon serves the next one."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from support import RunningDaemon
from support.daemon import places
from wire.raw import Json, Raw, connect_to

NOT_INITIALIZED, INVALID, UNKNOWN, BAD_PARAMS, NO_SESSION, CANCELLED = -32002, -32600, -32601, -32602, -32050, -32800
RESULT = 0
"""Where others have an error's code."""

REQUESTS: list[tuple[str, Json, int]] = [
    ("standfast/session/list", {}, RESULT),
    ("standfast/daemon/status", {}, RESULT),
    ("standfast/session/list", {"limit": "many"}, BAD_PARAMS),
    ("standfast/session/events", {"sessionId": "ses_none"}, NO_SESSION),
    ("standfast/no/such/method", {}, UNKNOWN),
]


class Conversation(RuleBasedStateMachine):
    """One client's lives, one connection after another."""

    socket: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.numbers = itertools.count(1)
        self.state: Literal["gone", "new", "up", "shut", "left"] = "gone"
        self.stack = contextlib.AsyncExitStack()
        self.raw: Raw | None = None
        self.due: dict[int, list[set[int]]] = {}
        """Per id of this connection, for each time it was used: the answers that fit."""

    @property
    def client(self) -> Raw:
        assert self.raw is not None
        return self.raw

    def send(self, method: str, params: Json, fits: set[int], message_id: int | None = None) -> int:
        number = next(self.numbers) if message_id is None else message_id
        self.due.setdefault(number, []).append(fits)
        self.client.request(number, method, params)
        return number

    def expected(self, when_up: int) -> set[int]:
        return {{"new": NOT_INITIALIZED, "up": when_up, "shut": INVALID}[self.state]}

    # -- what a client can do --

    @precondition(lambda self: self.state == "gone")
    @rule()
    def connect(self) -> None:
        self.raw = self.runner.run(self.stack.enter_async_context(connect_to(self.socket)))
        self.state, self.due = "new", {}

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def initialize(self) -> None:
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        self.send("initialize", params, {RESULT if self.state == "new" else INVALID})
        if self.state == "new":
            self.client.notify("initialized")
            self.state = "up"

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule(what=st.sampled_from(REQUESTS), then_cancel=st.booleans())
    def request(self, what: tuple[str, Json, int], *, then_cancel: bool) -> None:
        method, params, code = what
        number = self.send(method, params, self.expected(code))
        if then_cancel:
            self.due[number][-1].add(CANCELLED)
            self.client.notify("$/cancelRequest", {"id": number})

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def cancel_what_never_was(self) -> None:
        self.client.notify("$/cancelRequest", {"id": next(self.numbers)})

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def the_same_id_twice(self) -> None:
        number = self.send("standfast/session/list", {}, {*self.expected(RESULT), INVALID})
        self.send("standfast/session/list", {}, {*self.expected(RESULT), INVALID}, number)

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule(has_result=st.booleans())
    def a_response_to_nothing(self, *, has_result: bool) -> None:
        said: Json = {"result": {}} if has_result else {"error": {"code": -1, "message": "no"}}
        self.client.send({"jsonrpc": "2.0", "id": next(self.numbers), **said})

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def shutdown(self) -> None:
        self.send("shutdown", {}, self.expected(RESULT))
        if self.state == "up":
            self.state = "shut"

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def leave_in_order(self) -> None:
        self.client.notify("exit")
        self.state = "left"
        self._the_connection_ends()

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def cut(self) -> None:
        self._forget()

    @precondition(lambda self: self.state in ("new", "up", "shut"))
    @rule()
    def listen(self) -> None:
        """Everything that was asked is answered, and nothing else."""
        wanted = {number: len(uses) for number, uses in self.due.items()}
        answers: Counter[int] = Counter()

        async def read() -> None:
            while any(answers[number] < count for number, count in wanted.items()):
                message = await self.client.next()
                assert message is not None, f"closed, though {wanted} waits for its answers {answers}"
                if "method" not in message:
                    answers[message["id"]] += 1
                    self._fits(message)

        self.runner.run(read())
        assert dict(answers) == {number: count for number, count in wanted.items() if count}
        self.due = {}

    # -- what must hold --

    def _fits(self, message: dict[str, Any]) -> None:
        uses = self.due[message["id"]]
        code = message["error"]["code"] if "error" in message else RESULT
        assert any(code in use for use in uses), f"{message} does not fit {uses}"

    def _the_connection_ends(self) -> None:
        self.runner.run(self.client.rest())
        assert self.client.closed
        self._forget()

    def _forget(self) -> None:
        self.runner.run(self.stack.aclose())
        self.stack, self.raw, self.state = contextlib.AsyncExitStack(), None, "gone"

    def teardown(self) -> None:
        if self.state != "gone":
            self.listen()
            self._forget()
        self.connect()
        self.initialize()
        self.request(REQUESTS[0], then_cancel=False)
        self.listen()
        self._forget()
        self.runner.close()


def test_whatever_is_said_in_whatever_order_each_request_has_its_answer(shared_daemon: RunningDaemon) -> None:
    Conversation.socket = places(shared_daemon.home).socket
    run_state_machine_as_test(
        Conversation,
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
