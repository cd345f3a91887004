"""A request after `shutdown` gets no answer; LSP wants the error -32600."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(2, "shutdown")))
    assert server.answer(2) is not None
    server.send(frame(message(3, "facts/echo", {})))
    verdict("a request after shutdown gets no answer", server.answer(3) is None)
