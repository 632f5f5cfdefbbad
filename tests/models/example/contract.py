"""The worked example of CONTRIBUTING.md, kept true by the contract suite."""

import json
import threading
from contextlib import contextmanager

from websockets.sync.server import serve

from tests.contract.case import Case


def answer(socket):
    """Give back what was heard; count the units aloud."""
    for number, message in enumerate(socket):
        if isinstance(message, str):
            socket.send(json.dumps({"type": "end"}))
            return
        socket.send(json.dumps({"type": "text", "delta": f"{number} "}))
        socket.send(message)


@contextmanager
def peer(folder):
    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield {"url": f"ws://127.0.0.1:{server.socket.getsockname()[1]}"}
        server.shutdown()
        thread.join()


CASE = Case("example", "docs.examples.parrot_socket", peer, media_s=1.6)
