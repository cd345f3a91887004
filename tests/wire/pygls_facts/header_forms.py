"""A header in lower case, as HTTP's rules allow it, makes the server deaf to that message and to what follows."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(2, "facts/echo", {}), b"content-length: %d\r\n\r\n"))
    server.send(frame(message(3, "facts/echo", {})))
    verdict("a header in lower case is not understood", server.answer(2) is None)
