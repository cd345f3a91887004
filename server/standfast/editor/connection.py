"""One connection from its first byte to its last: framing, lifecycle, who answers what, cancellation (design.md "Transport").

START HERE for the front. Whatever a client sends, it is answered by the specification or its own connection is closed; the
daemon, its sessions and other clients never notice.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson
from lsprotocol import types

from standfast.editor.answers import Answer
from standfast.editor.clients import Client
from standfast.editor.core import Core
from standfast.editor.dispatch import Prepared, encode_lsp, prepare
from standfast.editor.faults import WireFault, fault_of
from standfast.editor.framer import BadFrame, Framer
from standfast.editor.lifecycle import Lifecycle
from standfast.editor.messages import MessageId, Notification, Refused, Request, Response, read_message
from standfast.editor.order import Turn, Turns
from standfast.editor.outbox import Outbox
from standfast.protocol.errors import INVALID_REQUEST, REQUEST_CANCELLED, SERVER_NOT_INITIALIZED, code_of

log = logging.getLogger("standfast.editor")

MESSAGE_S = 60.0
"""How long a message may take from its first byte to its last piece; each piece of a body starts the time anew."""
IN_FLIGHT_MAX = 512
READS_AT_ONCE = 4
"""Requests that read the history, of one connection: a flood of them leaves the loop and the store to others."""
_PIECE = 256 * 1024
_AT_ONCE = 256
"""Messages taken in a row before others get the loop. A request and its cancellation in one burst: it never begins (d20)."""

_numbers = itertools.count(1)


@dataclass(slots=True)
class _Running:
    """A request that is not answered. `begun`: its handler has been entered."""

    task: asyncio.Task[None]
    turn: Turn
    reads: bool
    stops: bool
    begun: bool = False


async def serve_client(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, core: Core, *, message_s: float = MESSAGE_S
) -> None:
    """Serve one client until it leaves, is lost, or breaks the protocol. Never raises because of what the client does."""
    await Connection(reader, writer, core, message_s=message_s).run()


class Connection:
    """The state machine of one client: fresh → initialized → shut down; `exit`, a bad frame or a cut end it at any time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, core: Core, *, message_s: float = MESSAGE_S
    ) -> None:
        self._reader = reader
        self._core = core
        self._message_s = message_s
        self._outbox = Outbox(writer)
        self._client = Client(f"client {next(_numbers)}", self._outbox)
        self._life = Lifecycle(core, self._client)
        self._state: Literal["fresh", "initialized", "shutdown"] = "fresh"
        self._ended = False
        self._running: dict[MessageId, _Running] = {}
        self._turns = Turns()
        self._reading = asyncio.Semaphore(READS_AT_ONCE)
        self._tasks: asyncio.TaskGroup

    async def run(self) -> None:
        """Read until the end, then let go of everything that belongs to this client."""
        sending = asyncio.create_task(self._outbox.run(), name=f"send {self._client.name}")
        try:
            async with asyncio.TaskGroup() as self._tasks:
                await self._read()
                self._client.leave()
                self._outbox.close()  # what is being changed for this client is carried to its end, but nobody waits for it
                for running in list(self._running.values()):
                    if running.reads or running.stops or not running.begun:
                        running.task.cancel()
        finally:
            await self._life.leave()
            self._client.leave()
            self._outbox.close()
            await asyncio.shield(sending)

    # -- reading --

    async def _read(self) -> None:
        framer = Framer()
        while not self._ended and not self._outbox.dropped:
            try:
                async with asyncio.timeout(self._message_s if framer.within else None):
                    data = await self._reader.read(_PIECE)
            except TimeoutError:
                self._fail(None, WireFault(INVALID_REQUEST, "A message was begun and not finished."))
                return
            except OSError:
                return
            if not data:
                return
            for count, frame in enumerate(framer.feed(data), start=1):
                if isinstance(frame, BadFrame):
                    self._fail(None, WireFault(frame.code, frame.message))
                    return
                await self._take(frame)
                if self._ended:
                    return
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _take(self, body: bytes) -> None:
        message = read_message(body)
        if isinstance(message, Request):
            self._request(message)
        elif isinstance(message, Notification):
            await self._notification(message)
        elif isinstance(message, Response):
            self._client.answered(message)
        elif isinstance(message, Refused):
            self._fail(message.id, WireFault(message.code, message.message))

    # -- requests --

    def _request(self, request: Request) -> None:
        if request.id in self._running:
            self._fail(request.id, WireFault(INVALID_REQUEST, "A request with this id is still in flight."))
            return
        refusal = self._refusal(request)
        if refusal is not None:
            self._fail(request.id, refusal)
        elif request.method == types.INITIALIZE:
            self._initialize(request)
        elif request.method == types.SHUTDOWN:
            self._state = "shutdown"
            self._answer(request.id, Answer(b"null"))
        else:
            self._begin(request)

    def _refusal(self, request: Request) -> WireFault | None:
        """What the state of the connection holds against a request."""
        if self._state == "fresh" and request.method != types.INITIALIZE:
            return WireFault(SERVER_NOT_INITIALIZED, "Send `initialize` first.")
        if self._state == "initialized" and request.method == types.INITIALIZE:
            return WireFault(INVALID_REQUEST, "This connection is initialized already.")
        if self._state == "shutdown":
            return WireFault(INVALID_REQUEST, "After `shutdown` only `exit` may come.")
        if len(self._running) >= IN_FLIGHT_MAX:
            sentence = f"{IN_FLIGHT_MAX} requests are unanswered. This one was not begun; send it again later."
            return WireFault(code_of("Overloaded"), sentence, {"reason": "Overloaded"})
        return None

    def _initialize(self, request: Request) -> None:
        """Answered before the next message is read: it decides how that is understood."""
        try:
            result = self._life.initialize(request.params)
        except Exception as error:  # noqa: BLE001 - every request is answered
            self._fail(request.id, self._fault(error, request.method))
            return
        self._state = "initialized"
        self._answer(request.id, Answer(encode_lsp(result)))

    def _begin(self, request: Request) -> None:
        try:
            prepared = prepare(self._core, self._client, self._life.server, request)
        except Exception as error:  # noqa: BLE001 - every request is answered
            self._fail(request.id, self._fault(error, request.method))
            return
        turn = self._turns.take(prepared.key)
        task = self._tasks.create_task(self._carry_out(request, prepared, turn), name=request.method[:80])
        self._running[request.id] = _Running(task, turn, prepared.reads, prepared.stops)

    async def _carry_out(self, request: Request, prepared: Prepared, turn: Turn) -> None:
        """Wait for the turn, run, answer: once, unless `_cancel` has answered already."""
        running = self._running[request.id]
        try:
            async with turn.come():
                result = await self._run(running, prepared)
                if self._settle(request.id, running):
                    self._answer(request.id, result)
        except asyncio.CancelledError:
            if self._settle(request.id, running):
                self._fail(request.id, _cancelled())
        except Exception as error:  # noqa: BLE001 - every request is answered
            if self._settle(request.id, running):
                self._fail(request.id, self._fault(error, request.method))

    async def _run(self, running: _Running, prepared: Prepared) -> Answer:
        if not prepared.reads:
            running.begun = True
            return await prepared.run()
        async with self._reading:
            running.begun = True
            return await prepared.run()

    def _settle(self, message_id: MessageId, running: _Running) -> bool:
        """Take a request off the table; False if it is off already (its id may be another request's by now)."""
        if self._running.get(message_id) is not running:
            return False
        del self._running[message_id]
        return True

    def _cancel(self, params: Any) -> None:
        """`$/cancelRequest`: before it began it never runs; what only reads is stopped, and what leaves nothing then (it is answered
        once nothing is left); what else changes something goes on."""
        given: Any = cast(dict[str, Any], params).get("id") if isinstance(params, dict) else None
        if isinstance(given, bool) or not isinstance(given, int | str):
            return
        running = self._running.get(given)
        if running is not None and (running.reads or not running.begun):
            self._settle(given, running)
            running.turn.leave()
            running.task.cancel()
            self._fail(given, _cancelled())
        elif running is not None and running.stops:
            running.task.cancel()

    # -- notifications --

    async def _notification(self, note: Notification) -> None:
        if note.method == types.EXIT:
            self._ended = True
        elif note.method == types.CANCEL_REQUEST:
            self._cancel(note.params)
        elif self._state == "initialized":
            try:
                await self._life.notification(note, self._spawn)
            except Exception as error:  # noqa: BLE001 - a notification has no answer; the connection lives
                self._fault(error, note.method)

    def _spawn(self, work: Awaitable[None], name: str) -> None:
        """Do something for this client beside the reading; it ends with the connection."""
        self._tasks.create_task(self._guard(work, name), name=name)

    async def _guard(self, work: Awaitable[None], name: str) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            self._fault(error, name)

    # -- answering --

    def _answer(self, message_id: MessageId, given: Answer) -> None:
        self._outbox.put(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(message_id), given.result))
        given.then()

    def _fail(self, message_id: MessageId | None, fault: WireFault) -> None:
        self._outbox.put(orjson.dumps({"jsonrpc": "2.0", "id": message_id, "error": fault.error()}))

    def _fault(self, error: Exception, method: str) -> WireFault:
        """The fault to answer with; a defect of ours is logged, without what was said."""
        fault = fault_of(error)
        if fault.data is not None and fault.data.get("reason") == "InternalError":
            log.error("handler failed", exc_info=error, extra={"method": method[:80], "error": type(error).__name__})
        return fault


def _cancelled() -> WireFault:
    return WireFault(REQUEST_CANCELLED, "The request was cancelled.")
