"""The request body of a session: the full history, grown by appending and never built again.

Every slice is sent with all slices before it. What was once written is kept as bytes, so the
runner's work per slice does not grow with the history (only the bytes on the wire do).
"""

from __future__ import annotations

import base64
import json
import struct

from hfd.media_time import SAMPLE_RATE


def wav_16k(pcm: bytes) -> bytes:
    """A 16 kHz mono WAV file around int16 little-endian samples."""
    return (
        struct.pack("<4sI4s", b"RIFF", 36 + len(pcm), b"WAVE")
        + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, SAMPLE_RATE, SAMPLE_RATE * 2, 2, 16)
        + struct.pack("<4sI", b"data", len(pcm))
        + pcm
    )


class RequestBody:
    """JSON of one session's chat request; `parts` joined is the body to send.

    The user's content is wrapped in the Python-like dict that the model was trained on:
    ``{'audio_input': '<sound>', 'from_s2': '<command>', 'input_video': '<video frame>'}``.
    """

    def __init__(
        self,
        *,
        model: str,
        session_id: str,
        system_prompt: str,
        temperature: float,
        max_tokens: int,
    ) -> None:
        head = {
            "model": model,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "stream": False,
            "session_id": session_id,
            "vllm_xargs": {"conversation_id": session_id},
            "messages": [{"role": "system", "content": system_prompt}],
        }
        self._bytes = bytearray(_json(head)[: -len("]}")])

    @property
    def parts(self) -> tuple[bytearray, bytes]:
        """The body in two pieces: everything so far, and what closes it."""
        return self._bytes, b"]}"

    def add_slice(self, pcm: bytes, jpeg: bytes | None, command: str) -> None:
        """Append the user message of one slice.

        Args:
            pcm: int16 little-endian samples at 16 kHz.
            jpeg: the video frame that goes with this slice, or None.
            command: words of the second system for this slice, or an empty text.
        """
        opening = f"', 'from_s2': '{command}"
        self._bytes += b',{"role":"user","content":['
        self._add_text("{'audio_input': '")
        self._bytes += b',{"type":"input_audio","input_audio":{"data":"'
        self._bytes += base64.b64encode(wav_16k(pcm)) + b'","format":"wav"}},'
        if jpeg is None:
            self._add_text(opening + "'}")
        else:
            self._add_text(opening + "', 'input_video': '")
            self._bytes += b',{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,'
            self._bytes += base64.b64encode(jpeg) + b'"}},'
            self._add_text("'}")
        self._bytes += b"]}"

    def add_reply(self, text: str) -> None:
        """Append the thinker's answer, unchanged."""
        self._bytes += b"," + _json({"role": "assistant", "content": text})

    def _add_text(self, text: str) -> None:
        self._bytes += _json({"type": "text", "text": text})


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
