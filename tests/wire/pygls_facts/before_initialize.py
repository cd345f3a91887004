"""A request before `initialize` is carried out; LSP wants the error -32002."""

from talk import Server, frame, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(frame(message(1, "facts/echo", {})))
    answered = server.answer(1, 20)
    verdict("a request before initialize is carried out", answered is not None and "result" in answered)
