"""`exit` calls sys.exit: a server that serves several clients in one process would end for all of them."""

from talk import Server, frame, hello, message, serve_if_asked, verdict

serve_if_asked()
with Server(__file__) as server:
    server.send(hello())
    assert server.answer(1, 20) is not None
    server.send(frame(message(None, "exit")))
    verdict(f"exit ends the process, with {server.process.wait(20)}", server.process.poll() is not None)
