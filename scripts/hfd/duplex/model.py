"""The one interface between the workflow and a model.

A model turns units of media into events. It never decides media time, pacing, file formats or
retries: the session (hfd.stream.session) feeds it and stamps what it says.

A model lives in one module (or package) ``hfd.models.<name>`` that defines ``MODEL``, a subclass
of `DuplexModel`, and has one entry in config/models.yaml; nothing else knows its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hfd.duplex.events import Event
from hfd.duplex.units import SampleInfo, Unit

Clock = Literal["virtual", "arrival"]
VoiceOrigin = Literal["native_talker", "streaming_tts", "post_tts", "none"]
Emit = Callable[[Event], None]
"""Takes an event at the moment it exists; may be called from any thread until `finish` returns."""


@dataclass(frozen=True)
class Capabilities:
    """What a model needs and promises; recorded with every result.

    Attributes:
        unit_samples: length of one input unit in samples at 16 kHz (80 ms = 1280).
        output_rate: samples per second of the PCM it emits.
        clock: ``virtual`` for models whose compute happens inside `push` and can be measured
            there; ``arrival`` for servers, which are fed in real time.
        voice_origin: where its sound comes from.
        frame_rule: which of a unit's pictures it takes, in words and numbers, e.g. ``all`` or
            ``2 per second, pts k and k+0.4``.
        max_media_s: longest file it can take whole, or None for no limit.
        gpus: GPUs one worker needs.
        codec_hop_samples: its chunks are multiples of this many output samples, or None.
    """

    unit_samples: int
    output_rate: int
    clock: Clock
    voice_origin: VoiceOrigin
    frame_rule: str = "all"
    max_media_s: float | None = None
    gpus: int = 0
    codec_hop_samples: int | None = None


@dataclass(frozen=True)
class Identity:
    """Which model really ran; goes into provenance.

    Attributes:
        name: the model's public name.
        weights: hash or pinned revision of the weights, or None where there are none.
        detail: versions, dtype counts, quantisation, device, acceleration, ...: JSON values.
    """

    name: str
    weights: str | None
    detail: Mapping[str, Any] = field(default_factory=dict)


class ModelBroken(Exception):
    """Process, server or device is beyond use: the worker ends, and a fresh one goes on.

    Every other exception fails the sample in flight alone.
    """


class DuplexModel(ABC):
    """A full-duplex model: one file at a time, one unit at a time.

    Order of calls: ``load()`` once per process; then for each sample ``open``, ``push`` for every
    unit in order, ``finish``, ``close``. `close` is called in every case, also after an error,
    and must leave no state behind: the next sample's result may not depend on this one.
    Errors raise (`ModelBroken` if no other sample could succeed either); a model never returns a
    result it made up.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Check the model's `settings` (config/models.yaml) without loading anything.

        `hfd.models.settings.make_settings` does it, given a dataclass of the settings.

        Raises:
            HfdError: unknown key or impossible value, named as ``settings.<key>``.
        """

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """Known before `load`, from the settings alone."""

    @abstractmethod
    def load(self) -> Identity:
        """Load weights or start servers, warm up; called once, before the first sample."""

    @abstractmethod
    def open(self, sample: SampleInfo, emit: Emit) -> None:
        """Begin a sample. Refuse here, with an `HfdError`, a file that cannot be taken whole."""

    @abstractmethod
    def push(self, unit: Unit) -> None:
        """Consume one unit; emit whatever comes of it, at the moment it exists."""

    @abstractmethod
    def finish(self) -> Mapping[str, Any]:
        """The file is over: let running speech end, add no input.

        Returns:
            Facts about how the sample ended, for the result: ``end_reason`` (a name) and
            ``truncated`` (True if the model's own limit cut an answer short), more if useful.
        """

    def close(self) -> None:
        """Forget the sample."""

    def unload(self) -> None:
        """Stop servers and free the device; called once at the end, in every exit path."""
