"""HTTP to a model's server, with limits that no server can stretch: a total time and a size.

httpx limits each read; a server that drips would hold a request for ever. Here one deadline covers
the whole exchange, a watch ends it by closing the socket, and another thread may do the same.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from hfd.errors import HfdError

PIECE_BYTES = 2**18
"""How much is handed to the socket at once: what is left of a piece is copied at every write."""
MOST_WORDS = 500
MOST_READ_FOR_WORDS = 2**16


class ServerFailed(HfdError):
    """The server is gone, too slow, or answered with an error of its own (5xx)."""

    lost_as = "service_error"


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer.

    Attributes:
        status: HTTP status.
        headers: by name, in lower case.
        body: as it came; compressed answers are not asked for.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> str:
        """The server's explanation of an error, shortened."""
        text = self.body[:MOST_READ_FOR_WORDS].decode("utf-8", "replace").strip()
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            text = str(json.loads(text)["detail"])
        return text[:MOST_WORDS]


class HttpServer:
    """One server; a new connection for every request, so that none is stale.

    Args:
        name: for messages.
        url: ``http(s)://host:port``; proxies and redirects are not followed.
        timeout_s: longest time of one whole exchange.
        most_bytes: longest body that is taken.
    """

    def __init__(self, name: str, url: str, timeout_s: float, most_bytes: int) -> None:
        self.name = name
        self._url = url
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._client = httpx.Client(
            trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self._lock = threading.Lock()
        self._busy: set[_Watch] = set()

    def request(
        self,
        method: str,
        path: str,
        *parts: bytes | bytearray,
        headers: Mapping[str, str] | None = None,
        left: Callable[[float], None] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """Send `parts` one after the other as one body and return the whole answer.

        Args:
            method, path: of the request.
            parts: its body.
            headers: further ones.
            timeout_s: another limit for this exchange.
            left: told the monotonic time at which the request had left in whole; may raise.

        Raises:
            ServerFailed: no connection, a broken one, no whole answer in time, or one too long.
        """
        with self.stream(
            method, path, *parts, headers=headers, left=left, timeout_s=timeout_s
        ) as reply:
            return Answer(reply.status, reply.headers, b"".join(reply.pieces()))

    @contextlib.contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *parts: bytes | bytearray,
        headers: Mapping[str, str] | None = None,
        left: Callable[[float], None] | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[Reply]:
        """As `request`, but the body is read piece by piece.

        Raises:
            ServerFailed: as `request`, also from `Reply.pieces`.
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        watch = _Watch(limit_s, left)
        with self._lock:
            self._busy.add(watch)
        try:
            with self._client.stream(
                method,
                self._url + path,
                content=_pieces(parts),
                headers={
                    "Content-Length": str(sum(map(len, parts))),
                    "Accept-Encoding": "identity",
                    **(headers or {}),
                },
                timeout=limit_s,
                extensions={"trace": watch.trace},
            ) as response:
                yield Reply(response, self._most_bytes, self.name)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise self._failed(watch, error) from error
        finally:
            watch.end()
            with self._lock:
                self._busy.discard(watch)

    def abort(self) -> None:
        """End the requests in flight; each raises in its own thread."""
        with self._lock:
            busy = list(self._busy)
        for watch in busy:
            watch.cut()

    def _failed(self, watch: _Watch, error: Exception) -> ServerFailed:
        if watch.expired or isinstance(error, httpx.TimeoutException):
            return ServerFailed(
                f"the {self.name} did not answer within {watch.limit_s:g} s",
                remedy="Read its log; a slower machine needs a larger request_timeout_s",
            )
        return ServerFailed(
            f"the {self.name} is gone: {error or type(error).__name__}",
            remedy="Read the server's log, start it again and run again",
        )


@dataclass(frozen=True)
class Reply:
    """An answer whose body is still to be read."""

    _response: httpx.Response
    _most_bytes: int
    _name: str

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """By name, in lower case."""
        return dict(self._response.headers)

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            ServerFailed: it is longer than the limit.
        """
        taken = 0
        for piece in self._response.iter_raw():
            taken += len(piece)
            if taken > self._most_bytes:
                raise ServerFailed(f"the {self._name} sent more than {self._most_bytes} bytes")
            yield piece


@dataclass(eq=False)
class _Watch:
    """The end of one exchange's time, and the socket it is ended by."""

    limit_s: float
    left: Callable[[float], None] | None
    expired: bool = False
    _cut: bool = False
    _socket: socket.socket | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._timer = threading.Timer(self.limit_s, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by httpcore at every step of the exchange."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._take(info["return_value"].get_extra_info("socket"))
        elif event == "http11.send_request_body.complete" and self.left is not None:
            self.left(time.monotonic())

    def cut(self) -> None:
        """End the exchange; what waits for the socket raises."""
        with self._lock:
            self._cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """The exchange is over."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def _take(self, opened: socket.socket) -> None:
        with self._lock:
            self._socket = opened
            already = self._cut
        if already:
            self.cut()

    def _expire(self) -> None:
        self.expired = True
        self.cut()


def _pieces(parts: tuple[bytes | bytearray, ...]) -> Iterator[bytes]:
    for part in parts:
        for start in range(0, len(part), PIECE_BYTES):
            yield bytes(part[start : start + PIECE_BYTES])
