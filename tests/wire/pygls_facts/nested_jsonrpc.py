"""A key `jsonrpc` inside of the params is taken for a message of its own, and the request is lost."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(2, "facts/echo", {"inner": {"jsonrpc": "2.0", "text": "x"}})))
    answered = server.answer(2)
    verdict("params that hold a key jsonrpc break the request", answered is None or "error" in answered)
