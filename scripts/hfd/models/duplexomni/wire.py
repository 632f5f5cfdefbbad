"""HTTP to the thinker and the talker, and the meaning of their answers."""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import json
import socket
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from hfd.errors import HfdError
from hfd.models.duplexomni.blob import ThinkerBlob, read_blob

OUTPUT_RATE = 24_000
SLICE_OUT_SAMPLES = 11_520
"""Samples of one spoken slice: six codec frames of 80 ms at 24 kHz."""


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> str:
        """The server's explanation of an error, shortened."""
        text = self.body.decode("utf-8", "replace").strip()
        with contextlib.suppress(ValueError, TypeError, KeyError):
            text = str(json.loads(text)["detail"])
        return text[:500]


class ServerFailed(HfdError):
    """The server is gone, too slow, or answered with an error of its own (5xx)."""


class Endpoint:
    """One server; a new connection for every request, so that none is stale.

    Args:
        name: for messages (``thinker``, ``talker``).
        url: ``http://127.0.0.1:port``; the servers trust whoever reaches them, so only loopback.
        timeout_s: longest wait for a whole answer's next byte.

    Raises:
        HfdError: the URL is not http on loopback.
    """

    def __init__(self, name: str, url: str, timeout_s: float) -> None:
        self.name = name
        self.host, self.port = _loopback(name, url)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None

    def request(self, method: str, path: str, *parts: bytes, kind: str | None = None) -> Answer:
        """Send `parts` one after the other as one body and return the answer.

        Raises:
            ServerFailed: no connection, a broken one, or none of the answer within the time.
        """
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self._timeout_s)
        try:
            connection.connect()
            self._socket = connection.sock
            connection.putrequest(method, path)
            connection.putheader("Content-Length", str(sum(map(len, parts))))
            if kind:
                connection.putheader("Content-Type", kind)
            connection.endheaders()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for part in parts:  # a server may refuse before it has read all: read why
                    connection.send(part)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        except TimeoutError as error:
            raise ServerFailed(
                f"the {self.name} did not answer within {self._timeout_s:g} s",
                remedy="Read its log; a slower machine needs a larger request_timeout_s",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(
                f"the {self.name} is gone: {error or type(error).__name__}",
                remedy="Read the server's log, start it again and run again",
            ) from error
        finally:
            self._socket = None
            connection.close()

    def abort(self) -> None:
        """End the request in flight, if there is one; it raises in its own thread."""
        if (busy := self._socket) is not None:
            with contextlib.suppress(OSError):
                busy.shutdown(socket.SHUT_RDWR)

    def health(self) -> dict[str, Any]:
        """The server's own description of itself.

        Raises:
            HfdError: it does not answer, or not with a JSON object.
        """
        answer = self.request("GET", "/health")
        try:
            found = json.loads(answer.body)
        except ValueError:
            found = None
        if answer.status != 200 or not isinstance(found, dict):
            raise HfdError(f"the {self.name} is not healthy: {answer.status} {answer.words}")
        return found


def think(thinker: Endpoint, session_id: str, *body: bytes) -> tuple[bytes, ThinkerBlob]:
    """One thinker turn.

    Returns:
        The blob as it came, and its text (read without opening the pickle's objects).

    Raises:
        HfdError: an error status, another session's answer, or an unfit blob.
    """
    answer = thinker.request("POST", "/internal/chat_turn", *body, kind="application/json")
    _refuse_error("thinker", answer)
    blob = read_blob(answer.body)
    for answered in (blob.session_id, answer.headers.get("X-Thinker-Session-Id", session_id)):
        if answered != session_id:
            raise HfdError(
                f"the thinker answered for session {answered!r}, not {session_id!r}",
                remedy="Let nothing else use this stack while a sample runs",
            )
    return answer.body, blob


def speak(
    talker: Endpoint, session_id: str, blob: bytes
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """One talker turn.

    Returns:
        The slice's sound (int16, shape [11520]) or None if the talker made none (204), and the
        talker's own account of the turn.

    Raises:
        HfdError: an error status, or a sound of another length, rate or format.
    """
    path = f"/internal/talker/turn/{session_id}"
    answer = talker.request("POST", path, blob, kind="application/octet-stream")
    _refuse_error("talker", answer)
    sound = _slice_sound(answer.body) if answer.status == 200 else None
    return sound, _turn_facts(answer.headers.get("X-Talker-Meta"))


def _refuse_error(name: str, answer: Answer) -> None:
    if answer.status not in (200, 204):
        kind = ServerFailed if answer.status >= 500 else HfdError
        raise kind(f"the {name} answered {answer.status}: {answer.words}")


def _slice_sound(wav: bytes) -> np.ndarray:
    try:
        with wave.open(io.BytesIO(wav)) as file:
            shape = (file.getframerate(), file.getnchannels(), file.getsampwidth())
            pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError, ValueError) as error:
        raise HfdError(f"the talker's sound is no WAV file: {error}") from error
    if shape != (OUTPUT_RATE, 1, 2) or len(pcm) != SLICE_OUT_SAMPLES:
        rate, channels, width = shape
        raise HfdError(
            f"the talker's slice has {len(pcm)} samples ({rate} Hz, {channels} channels, "
            f"{8 * width} bit), not {SLICE_OUT_SAMPLES} at {OUTPUT_RATE} Hz mono 16 bit",
            remedy="Leave TALKER_REAL_CODEC_STEPS at 6; sound is never stretched or cut",
        )
    return pcm


def _turn_facts(header: str | None) -> dict[str, Any]:
    """The part of X-Talker-Meta that is worth keeping for every slice."""
    try:
        meta = json.loads(header or "{}")
    except ValueError:
        meta = {}
    kept = ("valid_turn", "eos_emitted", "layer0_steps", "elapsed_s")
    return {key: meta[key] for key in kept if key in meta} if isinstance(meta, dict) else {}


def _loopback(name: str, url: str) -> tuple[str, int]:
    """Host and port of an http URL on this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as error:
        raise HfdError(f"{url!r} is no URL", field=f"settings.stack.{name}_url") from error
    if parts.scheme != "http" or not _is_loopback(host):
        raise HfdError(
            f"{url!r} is not http on the loopback interface",
            field=f"settings.stack.{name}_url",
            remedy="The servers execute what they are sent: run them on the job's own machine "
            "and name http://127.0.0.1:<port>",
        )
    return host, port


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
