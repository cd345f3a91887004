"""Params of a method that pygls does not know become a named tuple, whose field names are changed where Python forbids them."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(2, "facts/echo", {"class": 1, "a-b": 2})))
    answered = server.answer(2)
    assert answered is not None
    seen = answered["result"]["seen"]
    verdict(f"custom params are not what was sent: {seen}", "_0=1" in seen and "_1=2" in seen)
