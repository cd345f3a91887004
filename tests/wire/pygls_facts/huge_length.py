"""`Content-Length: 10^18` ends the server: there is no cap, and the number goes to the reader as it is."""

import contextlib

from talk import QUIET_S, Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(b"Content-Length: 1000000000000000000\r\n\r\n{}")
    with contextlib.suppress(BrokenPipeError):
        server.send(frame(message(2, "facts/echo", {})))
    verdict("after an absurd length nothing is answered", server.answer(2, QUIET_S) is None)
