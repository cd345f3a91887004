"""A request whose params do not fit its type is never answered: the client waits for ever."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(2, "textDocument/hover", {"textDocument": 5})))
    server.send(frame(message(3, "facts/echo", {})))
    assert server.answer(3) is not None, "it lives"
    verdict("a request with wrong params gets no answer", server.answer(2, 1) is None)
