"""One websocket to one server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure

MAX_MESSAGE_BYTES = 64 << 20
PING_INTERVAL_S, PING_TIMEOUT_S = 20.0, 120.0
CLOSE_S = 2.0
WRITE_LIMIT = (1, 0)
"""`send` returns once the message has left the process. (0 would never return under TLS.)"""
SEND_BUFFER_BYTES = 1 << 17
"""What the system may hold back: a server that does not read must be noticed within seconds."""
MESSAGE_TOO_BIG = 1009
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
_SHOWN_BODY = 300


class _Connect(connect):
    """No redirects: a key goes to the address that the user wrote, and to no other."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Link:
    """A connection with its name, its limits and its failures.

    Args:
        peer: the server's name in failures and in the recording.
        exchange: the sample it belongs to.
        max_message_bytes: a longer message fails the sample as ``too_big``.
    """

    def __init__(
        self, peer: str, exchange: Exchange, max_message_bytes: int = MAX_MESSAGE_BYTES
    ) -> None:
        self._peer = peer
        self._exchange = exchange
        self._max_bytes = max_message_bytes
        self._socket: ClientConnection | None = None

    @contextlib.asynccontextmanager
    async def setup(self, timeout_s: float) -> AsyncIterator[None]:
        """All that happens until the session is open, within one deadline.

        Raises:
            SampleFailure: ``connect_failed``, the time is over or the connection broke.
        """
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except TimeoutError:
            raise self.failure("connect_failed", f"no session within {timeout_s:g} s") from None
        except SampleFailure as failure:
            if failure.kind != "socket_lost":
                raise
            raise self.failure("connect_failed", f"no session: {failure.problem}") from failure

    async def connect(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        """Open the socket (inside `setup`): no proxy, no compression, no redirect.

        Raises:
            SampleFailure: ``connect_failed``, ``refused``, ``busy``.
        """
        try:
            self._socket = await _Connect(
                url,
                additional_headers=dict(headers or {}),
                max_size=self._max_bytes,
                write_limit=WRITE_LIMIT,
                compression=None,
                proxy=None,
                open_timeout=None,
                ping_interval=PING_INTERVAL_S,
                ping_timeout=PING_TIMEOUT_S,
            )
        except InvalidStatus as error:
            raise self._refusal(error) from None  # its request holds the key
        except TimeoutError:
            raise
        except (OSError, WebSocketException, EOFError) as error:
            text = f"no connection ({type(error).__name__}: {error})"
            raise self.failure("connect_failed", text) from None
        tcp = self._socket.transport.get_extra_info("socket")
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)

    async def send(self, message: str | bytes) -> None:
        """Send one message; return when it has left the process.

        Raises:
            SampleFailure: ``socket_lost``, ``too_big``.
        """
        assert self._socket is not None
        try:
            await self._socket.send(message)
        except ConnectionClosed as error:
            raise self._lost(error) from error
        self._exchange.recording.add(self._peer, "out", message)

    async def receive(self) -> tuple[str | bytes, float]:
        """The next message, and the monotonic time at which it was there in whole.

        Raises:
            SampleFailure: ``socket_lost`` (also after an orderly close), ``too_big``.
        """
        assert self._socket is not None
        try:
            raw = await self._socket.recv()
        except ConnectionClosed as error:
            raise self._lost(error) from error
        received = time.monotonic()
        self._exchange.recording.add(self._peer, "in", raw)
        return raw, received

    async def messages(self) -> AsyncIterator[tuple[str | bytes, float]]:
        """All messages as `receive` gives them, until the server closes in order.

        Raises:
            SampleFailure: ``socket_lost``, ``too_big``.
        """
        while True:
            try:
                message = await self.receive()
            except SampleFailure:
                if self.closed_in_order:
                    return
                raise
            yield message

    @property
    def closed_in_order(self) -> bool:
        """Whether the server has closed the socket with 1000 or 1001."""
        return self._socket is not None and self._socket.close_code in (1000, 1001)

    @property
    def latency_ms(self) -> float:
        """Round trip of the last ping in milliseconds; 0 before the first pong."""
        return 0.0 if self._socket is None else self._socket.latency * 1000

    async def ping_ms(self) -> float:
        """One round trip in milliseconds.

        Raises:
            SampleFailure: ``socket_lost``.
        """
        assert self._socket is not None
        try:
            return await (await self._socket.ping()) * 1000
        except ConnectionClosed as error:
            raise self._lost(error) from error

    async def close(self) -> None:
        """Close within `CLOSE_S`, whatever the server does."""
        if self._socket is None:
            return
        with contextlib.suppress(TimeoutError, ConnectionClosed, OSError):
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close()
                return
        self._socket.transport.abort()

    def failure(self, kind: str, text: str, remedy: str | None = None) -> SampleFailure:
        """A failure of this server, without secrets."""
        return SampleFailure(
            kind, self._exchange.secrets.hide(text), peer=self._peer, remedy=remedy
        )

    def _lost(self, error: ConnectionClosed) -> SampleFailure:
        sent = None if error.rcvd_then_sent else error.sent
        if sent is not None and sent.code == MESSAGE_TOO_BIG:
            return self.failure("too_big", f"a message of more than {self._max_bytes} bytes came")
        return self.failure("socket_lost", str(error))

    def _refusal(self, error: InvalidStatus) -> SampleFailure:
        response = error.response
        body = bytes(response.body or b"").decode("utf-8", "replace")[:_SHOWN_BODY]
        kind = "busy" if response.status_code in _BUSY else "refused"
        return self.failure(
            kind, f"HTTP {response.status_code} {response.reason_phrase}: {' '.join(body.split())}"
        )
