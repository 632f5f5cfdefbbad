"""A dialect: which messages say what to one kind of server. Pure: no socket, no clock, no file.

To add one: a file in ``dialects/`` with a subclass of `Dialect` (two traits, five methods), and a
line in ``dialects/__init__.py``. Everything else (pacing, times, barge-in, the end, failures,
secrets, budget) is shared and needs no word in it.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hfd.models.realtime.facts import Fact
from hfd.models.realtime.settings import Settings

Message = str | bytes


@dataclass(frozen=True)
class Traits:
    """What the shared part must know of a server.

    Attributes:
        unit_samples: length of one input unit in samples at 16 kHz.
        input_rate, output_rate: samples per second that it takes and gives.
        codec: ``pcm16`` (little-endian mono), ``f32`` (the input only; sound comes as PCM16) or
            ``opus`` (Ogg pages, both ways).
        exact_units: input must come in pieces of exactly one unit, also after resampling.
        stream: how sound comes: ``burst`` (faster than it plays), ``unit`` (a piece per input
            unit) or ``continuous`` (an endless stream with its own silence).
        input_clock: the server's time is our input: it says nothing once the file is over.
        answers_units: every unit is answered by a decision to listen or by sound.
        cuts_on_user_speech: an answer ends when the server hears the user begin.
        hears_playback: the server can be told how much of an answer was heard.
        turn_taking: who decides that the model speaks: the ``model``, a ``vad`` in front of it.
        full_duplex: ``native``, or ``vad_gated``: it listens while it speaks only to stop.
        video: whether it takes video frames at all.
        max_frame_bytes: largest JPEG it takes, or None.
        max_media_s: longest file that fits in one session, or None.
        context: what it does when its context is full, as far as it is known: ``disabled``
            (it refuses), ``sliding`` (it forgets) or ``unknown``.
        key_env: environment variables that may hold its key, in order; empty: it needs none.
        codec_hop_samples: its sound comes in multiples of this many samples, or None.
    """

    unit_samples: int
    output_rate: int = 24_000
    input_rate: int = 16_000
    codec: Literal["pcm16", "f32", "opus"] = "pcm16"
    exact_units: bool = False
    stream: Literal["burst", "unit", "continuous"] = "burst"
    input_clock: bool = False
    answers_units: bool = False
    cuts_on_user_speech: bool = False
    hears_playback: bool = False
    turn_taking: Literal["model", "vad"] = "vad"
    full_duplex: Literal["native", "vad_gated"] = "vad_gated"
    video: bool = False
    max_frame_bytes: int | None = None
    max_media_s: float | None = None
    context: Literal["disabled", "sliding", "unknown"] = "unknown"
    key_env: tuple[str, ...] = ()
    codec_hop_samples: int | None = None


class Dialect(ABC):
    """One session's worth of a dialect; made anew for every sample.

    Attributes:
        settings: the model's settings.
        seed: the sample's seed, for services that take one.
        traits: set by the subclass, in its class or in its constructor.
        families: first words of the event names that belong to the dialect, with a meaning for us
            or without. A server of whose events none has one speaks something else.
    """

    traits: Traits
    families: tuple[str, ...] = (
        "conversation",
        "error",
        "input_audio_buffer",
        "output_audio_buffer",
        "playback",
        "rate_limits",
        "response",
        "session",
        "transcription",
    )

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        """Take the settings and the sample's seed.

        Raises:
            HfdError: a setting that this dialect cannot carry.
        """
        self.settings = settings
        self.seed = seed

    def headers(self, key: str) -> Mapping[str, str]:
        """HTTP headers of the connection; `key` is empty where none is needed."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def opening(self) -> Sequence[Message]:
        """What is sent at once after the connection; the session is open at `Opened`."""
        return ()

    @abstractmethod
    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        """The messages of one unit.

        Args:
            sound: the unit in the dialect's rate and codec; empty while the codec holds it back.
            frames: JPEG files of the video frames whose turn has come.
        """

    def ending(self) -> Sequence[Message]:
        """What is sent right after the last unit."""
        return ()

    def goodbye(self) -> Sequence[Message]:
        """What is sent when every answer is over, before the socket is closed."""
        return ()

    def heard(self, item: str, heard_ms: int) -> Sequence[Message]:
        """Tell the server that the user heard `heard_ms` of an item that was cut."""
        return ()

    def played(self, item: str, played_ms: int) -> Sequence[Message]:
        """Tell the server that the user has heard an item in whole."""
        return ()

    def relied_on(self) -> Mapping[str, Any]:
        """Keys of the echoed session (dotted) that must not differ from these values."""
        return {}

    @abstractmethod
    def read(self, raw: str | bytes) -> Sequence[Fact]:
        """What one message says.

        Raises:
            ValueError, KeyError, TypeError: it is none of this dialect.
        """


def say(kind: str, **fields: Any) -> str:
    """A JSON message with a type."""
    return json.dumps({"type": kind, **fields}, ensure_ascii=False)


def b64(data: bytes) -> str:
    """Bytes as base64 text."""
    return base64.b64encode(data).decode()


def unb64(text: str) -> bytes:
    """The bytes of base64 text, of either alphabet.

    Raises:
        ValueError: it is none.
    """
    return base64.b64decode(text.translate({45: "+", 95: "/"}), validate=True)


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what `more` says on top, mapping by mapping."""
    out = dict(base)
    for key, value in more.items():
        below = out.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            out[key] = merged(below, value)
        else:
            out[key] = value
    return out
