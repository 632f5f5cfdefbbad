"""HTTP to the thinker and the talker, and the meaning of their answers."""

from __future__ import annotations

import io
import ipaddress
import json
import wave
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from hfd.errors import HfdError
from hfd.files import sha256_bytes
from hfd.models.duplexomni.blob import MAX_BLOB_BYTES, ThinkerBlob, read_blob
from hfd.models.http import Answer, HttpServer, ServerFailed

OUTPUT_RATE = 24_000
SLICE_OUT_SAMPLES = 11_520
"""Samples of one slice at 24 kHz: six codec frames of 80 ms."""
TALKER_SAMPLES = SLICE_OUT_SAMPLES - 555
"""Samples that the talker makes of them: the transposed convolutions of Code2Wav (Hugging Face's
Qwen3OmniMoeCode2Wav, 4.57 and 5.17) lose 555 at the edges of whatever they decode in one call."""
SOUND_RULE = (
    f"{TALKER_SAMPLES} samples of a slice (1920 * 6 - 555), linearly interpolated to "
    f"{SLICE_OUT_SAMPLES}, as the authors' clients do"
)
MAX_SOUND_BYTES = 2**20
"""Longest answer of the talker; a slice has 22 kB."""
FORGET_S = 10.0
"""How long ending a session may take."""


class Endpoint(HttpServer):
    """The thinker or the talker.

    Args:
        name: ``thinker`` or ``talker``.
        url: ``http://127.0.0.1:port``; the servers trust whoever reaches them, so only loopback.
        timeout_s: longest time of one whole exchange.
        most_bytes: longest answer that is taken.

    Raises:
        HfdError: the URL is not http on loopback.
    """

    def __init__(
        self, name: str, url: str, timeout_s: float, most_bytes: int = MAX_BLOB_BYTES
    ) -> None:
        host, self.port = _loopback(name, url)
        at = f"[{host}]" if ":" in host else host
        super().__init__(name, f"http://{at}:{self.port}", timeout_s, most_bytes)

    def health(self) -> dict[str, Any]:
        """The server's own description of itself.

        Raises:
            HfdError: it does not answer, or not with a JSON object.
        """
        answer = self.request("GET", "/health")
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if answer.status != 200 or not isinstance(found, dict):
            raise HfdError(f"the {self.name} is not healthy: {answer.status} {answer.words}")
        return found


def think(
    thinker: Endpoint,
    session_id: str,
    *body: bytes | bytearray,
    left: Callable[[float], None] | None = None,
) -> tuple[bytes, ThinkerBlob]:
    """One thinker turn.

    Args:
        thinker: the server.
        session_id: whose turn it is.
        body: the request, in pieces.
        left: told the monotonic time at which the request had left in whole.

    Returns:
        The blob as it came, and its text (read without opening the pickle's objects).

    Raises:
        HfdError: an error status, another session's answer, or an unfit blob.
    """
    kind = {"Content-Type": "application/json"}
    answer = thinker.request("POST", "/internal/chat_turn", *body, headers=kind, left=left)
    _refuse_error("thinker", answer)
    blob = read_blob(answer.body)
    for answered in (blob.session_id, answer.headers.get("x-thinker-session-id", session_id)):
        if answered != session_id:
            raise HfdError(
                f"the thinker answered for session {answered!r}, not {session_id!r}",
                remedy="Let nothing else use this stack while a sample runs",
            )
    return answer.body, blob


@dataclass(frozen=True)
class SliceSound:
    """One slice's sound.

    Attributes:
        pcm: int16, shape [11520], as it is placed.
        talker_sha256: hash of the talker's own samples (int16 little-endian, 10 965 of them).
    """

    pcm: np.ndarray
    talker_sha256: str


def speak(
    talker: Endpoint, session_id: str, blob: bytes
) -> tuple[SliceSound | None, dict[str, Any]]:
    """One talker turn.

    Returns:
        The slice's sound, or None if the talker made none (204), and the talker's own account of
        the turn.

    Raises:
        HfdError: an error status, or a sound of another length, rate or format.
    """
    path = f"/internal/talker/turn/{session_id}"
    kind = {"Content-Type": "application/octet-stream"}
    answer = talker.request("POST", path, blob, headers=kind)
    _refuse_error("talker", answer)
    sound = _slice_sound(answer.body) if answer.status == 200 else None
    return sound, _turn_facts(answer.headers.get("x-talker-meta"))


def forget(talker: Endpoint, session_id: str) -> None:
    """End a session on the talker.

    Raises:
        ServerFailed: it does not answer.
    """
    talker.request("DELETE", f"/v1/talker/session/{session_id}", timeout_s=FORGET_S)


def to_slice(pcm: np.ndarray) -> np.ndarray:
    """The talker's samples of a slice over the slice's whole length, as the authors' clients do.

    Linear interpolation between the same first and last sample, numbers cut toward zero.

    Args:
        pcm: int16, shape [10965].

    Returns:
        int16, shape [11520].
    """
    here = np.linspace(0, 1, len(pcm), dtype=np.float64)
    there = np.linspace(0, 1, SLICE_OUT_SAMPLES, dtype=np.float64)
    return np.interp(there, here, pcm.astype(np.float64)).astype(np.int16)


def _refuse_error(name: str, answer: Answer) -> None:
    if answer.status not in (200, 204):
        kind = ServerFailed if answer.status >= 500 else HfdError
        raise kind(f"the {name} answered {answer.status}: {answer.words}")


def _slice_sound(wav: bytes) -> SliceSound:
    try:
        with wave.open(io.BytesIO(wav)) as file:
            shape = (file.getframerate(), file.getnchannels(), file.getsampwidth())
            pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError, ValueError, MemoryError) as error:
        raise HfdError(f"the talker's sound is no WAV file: {error}") from error
    if shape != (OUTPUT_RATE, 1, 2) or len(pcm) != TALKER_SAMPLES:
        rate, channels, width = shape
        raise HfdError(
            f"the talker's slice has {len(pcm)} samples ({rate} Hz, {channels} channels, "
            f"{8 * width} bit), not {TALKER_SAMPLES} at {OUTPUT_RATE} Hz mono 16 bit",
            remedy="Leave TALKER_REAL_CODEC_STEPS at 6",
        )
    return SliceSound(to_slice(pcm), sha256_bytes(pcm.tobytes()))


def _turn_facts(header: str | None) -> dict[str, Any]:
    """The part of X-Talker-Meta that is worth keeping for every slice: numbers and marks."""
    try:
        meta = json.loads(header or "{}")
    except (ValueError, RecursionError):
        meta = {}
    kept = ("valid_turn", "eos_emitted", "layer0_steps", "elapsed_s")
    facts = {key: meta.get(key) for key in kept} if isinstance(meta, dict) else {}
    return {key: value for key, value in facts.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float) and abs(value) < 2**53


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
