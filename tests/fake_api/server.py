"""The HTTP side of the fake: POST /v1/messages (a stream) and /v1/messages/count_tokens on loopback, one thread a connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from fake_api.replies import (
    STATUS_OF,
    WAIT_S,
    Answer,
    Ending,
    Gate,
    HttpReply,
    NoAnswer,
    Pause,
    Reply,
    Step,
    encode_event,
    http_error,
)
from fake_api.requests import Request
from fake_api.rules import REQUEST_BYTES_MAX, Refused, Sent, check, parse

Script = Iterable[Answer] | Callable[[Request], Answer]


class FakeApi:
    """The fake, started by `with` (or `start` and `close`).

    `script`: the answers in order, or a function from the request to its answer (called one at a time). A script that
    has no answer left gives a 400 that says so. Refused requests use up no answer. Every request is kept in `requests`.
    """

    def __init__(self, script: Script = (), *, key: str = "test-key", port: int = 0) -> None:
        self.key = key
        self.requests: list[Request] = []
        self.sent = Sent()
        self.gates: dict[str, Gate] = {}
        """Gates with a name, as far as a stream has come to them."""
        self.closed = threading.Event()
        self._script: list[Answer] | Callable[[Request], Answer] = script if callable(script) else list(script)
        self._changed = threading.Condition()
        self._tool_ids = 0
        self._under_way = 0
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="fake_api")

    # -- for tests ----------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def accepted(self) -> list[Request]:
        """Requests for a message that the API would have accepted, whatever the script then answered."""
        return [each for each in self.requests if each.error is None and each.path == "/v1/messages"]

    @property
    def refused(self) -> list[Request]:
        """Requests that broke a rule; `error` says which. A good test ends with `assert not api.refused`."""
        return [each for each in self.requests if each.error is not None]

    def push(self, *answers: Answer) -> None:
        """Further answers at the end of a list script."""
        if callable(self._script):
            raise TypeError("the script is a function")
        self._script.extend(answers)

    def wait_for(self, count: int, timeout_s: float = WAIT_S) -> list[Request]:
        """Block until so many requests came (refused ones count), and return all."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came within {timeout_s} s")
            return list(self.requests)

    async def requested(self, count: int, timeout_s: float = WAIT_S) -> list[Request]:
        """`wait_for` for tests that run a loop."""
        return await asyncio.to_thread(self.wait_for, count, timeout_s)

    async def quiet(self, timeout_s: float = WAIT_S) -> None:
        """Wait until no answer is under way: every stream has ended, or its client has gone away."""
        await asyncio.to_thread(self.wait_quiet, timeout_s)

    def wait_quiet(self, timeout_s: float = WAIT_S) -> None:
        """`quiet` for tests that run no loop."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._under_way == 0, timeout_s):
                raise TimeoutError(f"{self._under_way} answers are still under way after {timeout_s} s")

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """End every stream and every thread."""
        with self._changed:
            self.closed.set()
            self._changed.notify_all()
        for gate in list(self.gates.values()):
            gate.release()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()

    # -- for the handler ----------------------------------------------------------------------------------------------

    def stand_at(self, gate: Gate) -> None:
        """Hold a stream at a gate, unless the fake is closing (`close` sets `closed` before it releases the known gates)."""
        with self._changed:
            self.gates[gate.name or str(id(gate))] = gate
            self._changed.notify_all()
        if not self.closed.is_set():
            gate.hold()

    def answer(self, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        """Judge a request, keep it, and choose the answer."""
        with self._changed:
            request = Request(len(self.requests) + 1, path, headers, raw)
            answer = self._judge(request)
            self.requests.append(request)
            self._changed.notify_all()
            return answer

    def gate_called(self, name: str) -> Gate | None:
        """The gate of that name, once a stream has come to it; None if none comes."""
        with self._changed:
            self._changed.wait_for(lambda: name in self.gates or self.closed.is_set(), WAIT_S)
            return self.gates.get(name)

    @contextlib.contextmanager
    def answering(self) -> Generator[None]:
        """Around each answer."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _judge(self, request: Request) -> Answer:
        refusal = self._refusal(request)
        if refusal is not None:
            kind, request.error = refusal
            request.status = STATUS_OF[kind]
            return http_error(kind, request.error)
        if request.path.endswith("/count_tokens"):
            return HttpReply(200, json.dumps({"input_tokens": len(request.raw) // 4}).encode())
        answer = self._next(request)
        if isinstance(answer, HttpReply):
            request.status = answer.status
        return self._made_unique(answer) if isinstance(answer, Reply) else answer

    def _refusal(self, request: Request) -> tuple[str, str] | None:
        """The API's error type and message, or None."""
        headers = request.headers
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            return "authentication_error", "x-api-key header is required"
        if given != self.key:
            return "authentication_error", "invalid x-api-key"
        if "anthropic-version" not in headers:
            return "invalid_request_error", "anthropic-version: header is required"
        if len(request.raw) > REQUEST_BYTES_MAX:
            return "request_too_large", "Request exceeds the maximum size"
        try:
            request.body = parse(request.raw)
            counting = request.path.endswith("/count_tokens")
            check({**request.body, "max_tokens": 1} if counting else request.body, self.sent)
            if not counting and request.body.get("stream") is not True:
                raise Refused("stream: this fake only streams")
        except Refused as refused:
            return "invalid_request_error", str(refused)
        return None

    def _next(self, request: Request) -> Answer:
        if callable(self._script):
            return self._script(request)
        if not self._script:
            return http_error(
                "invalid_request_error", f"fake_api: the script has no answer for request {request.number}"
            )
        return self._script.pop(0)

    def _made_unique(self, answer: Reply) -> Reply:
        """Give ids to tool calls that have none, and remember what the client may send back."""
        steps: list[Step] = []
        texts: dict[int, str] = {}
        for step in answer.steps:
            block: dict[str, Any] = step.get("content_block", {}) if isinstance(step, dict) else {}
            if block.get("type") == "tool_use":
                self.sent.tools.add(block["name"])
                if isinstance(step, dict) and block["id"] is None:
                    self._tool_ids += 1
                    step = {**step, "content_block": {**block, "id": f"toolu_fake_{self._tool_ids}"}}
            elif block.get("type") == "redacted_thinking":
                self.sent.redacted.add(block["data"])
            if isinstance(step, dict) and step["type"] == "message_start":
                message_id = f"msg_fake_{len(self.requests) + 1}"
                step = {**step, "message": {**step["message"], "id": message_id}}
            if isinstance(step, dict) and step["type"] == "content_block_delta":
                self._remember_thinking(step, texts)
            steps.append(step)
        return Reply(tuple(steps), answer.chunk_bytes)

    def _remember_thinking(self, event: dict[str, Any], texts: dict[int, str]) -> None:
        index, delta = event["index"], event["delta"]
        if delta.get("type") == "thinking_delta":
            texts[index] = texts.get(index, "") + delta["thinking"]
        elif delta.get("type") == "signature_delta":
            self.sent.thinking.add((texts.get(index, ""), delta["signature"]))


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], api: FakeApi) -> None:
        super().__init__(address, _Handler)
        self.api = api
        self._open: set[socket.socket] = set()
        self.resets: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.add(connection)
        return connection, peer

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        if request in self.resets:
            self.resets.discard(request)
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_request(request)
        else:
            super().shutdown_request(request)

    def hang_up(self) -> None:
        """End all open connections, so that their threads end."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is ordinary here; anything else is the fake's own fault and must be seen."""
        error = sys.exception()
        if not isinstance(error, OSError):
            traceback.print_exception(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        path = self.path.partition("?")[0]
        if path.startswith("/_fake/gates/"):
            return self._control_gate(path)
        if path not in ("/v1/messages", "/v1/messages/count_tokens"):
            return self._plain(http_error("not_found_error", f"Not found: {path}"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.api.answering():
            self._answer(self.server.api.answer(path, headers, raw))

    def _answer(self, answer: Answer) -> None:
        match answer:
            case HttpReply():
                self._plain(answer)
            case NoAnswer():
                self._end(answer.how)
            case Reply():
                self._stream(answer)

    def do_GET(self) -> None:
        """`/_fake/requests`: what came so far, for tests that run the fake as a process."""
        if self.path != "/_fake/requests":
            return self._plain(http_error("not_found_error", f"Not found: {self.path}"))
        kept = [
            {"path": each.path, "status": each.status, "error": each.error, "body": each.body}
            for each in self.server.api.requests
        ]
        self._plain(HttpReply(200, json.dumps(kept).encode()))

    def _control_gate(self, path: str) -> None:
        """`POST /_fake/gates/NAME/release`: waits until a stream stands at the gate, and lets it go on."""
        gate = self.server.api.gate_called(path.split("/")[3])
        if gate is None:
            return self._plain(HttpReply(404, b'{"error": "no stream has come to this gate"}'))
        gate.release()
        self._plain(HttpReply(200, b"{}"))

    def _plain(self, answer: HttpReply) -> None:
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _stream(self, answer: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", "req_fake")
        self.end_headers()
        for step in answer.steps:
            match step:
                case Ending():
                    return self._end(step)
                case Gate():
                    self.server.api.stand_at(step)
                case Pause():
                    self.server.api.closed.wait(step.seconds)
                case bytes():
                    self._chunks(step, answer.chunk_bytes)
                case dict():
                    self._chunks(encode_event(step), answer.chunk_bytes)
            if self.server.api.closed.is_set():
                return self._end(Ending.CUT)
        self._end(Ending.EOF)

    def _chunks(self, data: bytes, size: int | None) -> None:
        for at in range(0, len(data), size or len(data)):
            part = data[at : at + (size or len(data))]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

    def _end(self, how: Ending) -> None:
        if how is Ending.EOF:
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if how is Ending.RESET:
            self.server.resets.add(self.connection)
        elif how is Ending.STALL:
            self.connection.recv(1)
