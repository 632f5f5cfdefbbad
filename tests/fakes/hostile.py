"""Servers that mean harm, or are badly broken, and what they do to a client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

Message = Callable[[Any], dict[str, Any]]
"""A message of the honest server in which one value (a text) can be chosen."""
SocketAttack = Callable[[ServerConnection, Message], Awaitable[None]]
HttpAttack = Callable[[socket.socket], None]
STEP_S = 0.05


# -- websockets -----------------------------------------------------------------------------------


def _once(make: Callable[[Message], str | bytes]) -> SocketAttack:
    """One bad message, and then nothing more."""

    async def attack(link: ServerConnection, message: Message) -> None:
        await link.send(make(message))
        await link.wait_closed()

    return attack


async def _abort(link: ServerConnection, message: Message) -> None:
    link.transport.abort()


async def _close_with_an_error(link: ServerConnection, message: Message) -> None:
    await link.close(1011, "\u6b7b")


async def _chatter(link: ServerConnection, message: Message) -> None:
    for number in range(10**9):
        await link.send(json.dumps({"type": f"stats.{number}", "load": 0.5}))
        await asyncio.sleep(0.01)


async def _more_than_fits(link: ServerConnection, message: Message) -> None:
    await link.send("x" * 2**20 for _ in range(80))
    await link.wait_closed()


async def _half_a_message_for_ever(link: ServerConnection, message: Message) -> None:
    async def pieces():
        while True:
            yield "x"
            await asyncio.sleep(STEP_S)

    await link.send(pieces())


SOCKET_ATTACKS: dict[str, SocketAttack] = {
    "no_json": _once(lambda message: "hello"),
    "binary_garbage": _once(lambda message: os.urandom(999)),
    "no_object": _once(lambda message: "[1, 2]"),
    "deep_nesting": _once(lambda message: "[" * 200_000),
    "deep_object": _once(lambda message: '{"type":' * 50_000),
    "long_number": _once(
        lambda message: json.dumps(message("@")).replace('"@"', "1" * 5000),
    ),
    "number_for_text": _once(lambda message: json.dumps(message(1.5))),
    "list_for_text": _once(lambda message: json.dumps(message(["a", {"b": None}]))),
    "not_a_number": _once(lambda message: json.dumps({**message("x"), "n": float("nan")})),
    "lone_surrogate": _once(lambda message: json.dumps(message("\ud800"))),
    "more_than_fits": _more_than_fits,
    "half_a_message_for_ever": _half_a_message_for_ever,
    "chatter_for_ever": _chatter,
    "connection_reset": _abort,
    "closed_with_an_error": _close_with_an_error,
}


@contextlib.contextmanager
def hostile_socket(
    greet: Callable[[ServerConnection], Awaitable[None]], attack: SocketAttack, message: Message
) -> Iterator[int]:
    """A websocket server that greets each client as the honest one does, and then attacks it."""
    loop = asyncio.new_event_loop()
    up = threading.Event()
    ports: list[int] = []

    async def handle(link: ServerConnection) -> None:
        with contextlib.suppress(Exception):  # whatever becomes of the client
            await greet(link)
            await attack(link, message)

    async def run() -> None:
        async with serve(handle, "127.0.0.1", 0, close_timeout=0.2, max_size=None) as server:
            ports.append(server.sockets[0].getsockname()[1])
            up.set()
            await stop.wait()
            server.close(close_connections=True)

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


# -- HTTP -----------------------------------------------------------------------------------------

_OK = b"HTTP/1.1 200 OK\r\n"


def _says(data: bytes) -> HttpAttack:
    """One answer, then the connection is closed."""

    def attack(client: socket.socket) -> None:
        client.sendall(data)

    return attack


def _body(data: bytes, status: bytes = _OK, more: bytes = b"") -> HttpAttack:
    return _says(status + more + b"Content-Length: %d\r\n\r\n" % len(data) + data)


def _drips(begin: bytes, piece: bytes, pause_s: float = STEP_S) -> HttpAttack:
    """Never comes to an end."""

    def attack(client: socket.socket) -> None:
        client.sendall(begin)
        while True:
            client.sendall(piece)
            time.sleep(pause_s)

    return attack


def _hangs(client: socket.socket) -> None:
    time.sleep(60)


def _resets(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


HTTP_ATTACKS: dict[str, HttpAttack] = {
    "no_answer": _hangs,
    "reset": _resets,
    "closed": _says(b""),
    "no_http": _says(b"\x00\xffgarbage\r\n\r\n"),
    "dripping_head": _drips(_OK, b"X"),
    "endless_head": _drips(_OK, b"X-More: 1\r\n" * 1000, 0),
    "early_hints_for_ever": _drips(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "dripping_body": _drips(_OK + b"Content-Length: 1000000\r\n\r\n", b"x"),
    "endless_body": _drips(
        _OK + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b"x" * 2**20 + b"\r\n", 0
    ),
    "short_body": _says(_OK + b"Content-Length: 1000\r\n\r\nabc"),
    "lying_length": _says(_OK + b"Content-Length: 99999999999999999999\r\n\r\nabc"),
    "empty_body": _body(b""),
    "garbage_body": _body(bytes(range(256)) * 40),
    "deep_json": _body(b"[" * 200_000),
    "deep_detail": _body(b'{"detail":' * 50_000, b"HTTP/1.1 500 No\r\n"),
    "zip_of_nothing": _body(b"PK\x03\x04" + b"\x00" * 1000),
    "called_gzip": _body(b"\x1f\x8b" + b"\x00" * 100, more=b"Content-Encoding: gzip\r\n"),
    "redirect": _body(b"", b"HTTP/1.1 307 No\r\n", b"Location: http://127.0.0.1:1/\r\n"),
    "no_status": _body(b"{}", b"HTTP/1.1 999 What\r\n"),
}


class HostileHttp:
    """A TCP server that attacks some requests and passes all others to an honest server.

    Args:
        attack: what is done with a request that is attacked.
        honest_port: where the others go.
        spares: whether a request (its first bytes) is passed on.
    """

    def __init__(
        self, attack: HttpAttack, honest_port: int, spares: Callable[[bytes], bool]
    ) -> None:
        self._attack, self._honest_port, self._spares = attack, honest_port, spares
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def die(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            request = _read_request(client)
            if not self._spares(request[:2000]):
                self._attack(client)
                return
            with socket.create_connection(("127.0.0.1", self._honest_port)) as honest:
                head, _, body = request.partition(b"\r\n\r\n")
                honest.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
                while piece := honest.recv(2**16):
                    client.sendall(piece)


def _read_request(client: socket.socket) -> bytes:
    """Head and body of one request that says its length."""
    request = b""
    while b"\r\n\r\n" not in request:
        if not (piece := client.recv(2**16)):
            raise OSError("no request")
        request += piece
    head, _, body = request.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        if not (piece := client.recv(2**20)):
            raise OSError("half a request")
        body += piece
    return head + b"\r\n\r\n" + body
