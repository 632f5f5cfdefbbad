"""Moshi's own server, and PersonaPlex on it: binary frames, the first byte is the kind.

Nothing may be sent before the handshake, nothing tells where an answer ends, and with no input
there is no output. Pieces of text are raw pieces of the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hfd.models.realtime.dialect import Dialect, Message, Traits
from hfd.models.realtime.facts import Fact, Failed, Opened, Other, Sound, Words
from hfd.models.realtime.settings import Settings

HANDSHAKE, SOUND, TEXT, CONTROL, METADATA, ERROR, PING = range(7)
_NAMES = {CONTROL: "control", METADATA: "metadata", PING: "ping"}
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Moshi(Dialect):
    """80 ms units as Ogg-Opus pages at 24 kHz."""

    families = tuple(_NAMES.values())
    traits = Traits(
        unit_samples=1280,
        input_rate=24_000,
        codec="opus",
        exact_units=True,
        stream="continuous",
        input_clock=True,
        turn_taking="model",
        full_duplex="native",
        context="sliding",
        codec_hop_samples=None,  # silence may be shortened by any number of samples
    )

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        super().__init__(settings, seed)
        self._bytes = b""

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        return [bytes([SOUND]) + sound] if sound else []

    def read(self, raw: str | bytes) -> Sequence[Fact]:
        if isinstance(raw, str) or not raw:
            raise ValueError("a frame without a kind")
        kind, body = raw[0], raw[1:]
        match kind:
            case 0:
                return [Opened()]
            case 1:
                return [Sound(body)]
            case 2:
                text = self._text(body.decode("utf-8"))
                return [Words(text)] if text else []
            case 5:
                return [Failed("server_error", body.decode("utf-8", "replace"))]
        return [Other(_NAMES.get(kind, f"kind {kind}"))]

    def _text(self, piece: str) -> str:
        """The characters that this piece completes; a byte piece waits for its others."""
        if found := _BYTE_PIECE.fullmatch(piece):
            self._bytes += bytes([int(found[1], 16)])
            try:
                text, self._bytes = self._bytes.decode("utf-8"), b""
            except UnicodeDecodeError as error:
                return "" if error.reason == "unexpected end of data" else self._broken("")
            return text
        return self._broken(piece) if self._bytes else piece

    def _broken(self, piece: str) -> str:
        """Bytes that never became a character, and what came instead of their others."""
        text, self._bytes = self._bytes.decode("utf-8", "replace"), b""
        return text + piece
