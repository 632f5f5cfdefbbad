"""The one interface between the workflow and a model.

A model turns units of media into events. It never decides media time, pacing, file formats or
retries: the session (hfd.stream.session) feeds it and stamps what it says.

A model lives in one module (or package) ``hfd.models.<name>`` that defines ``MODEL``, a subclass
of `DuplexModel`, and has one entry in config/models.yaml; nothing else knows its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from hfd.duplex.events import Event
from hfd.duplex.frames import EVERY_FRAME, FrameRule
from hfd.duplex.units import SampleInfo, Unit
from hfd.media_time import SAMPLE_RATE

Clock = Literal["virtual", "arrival"]
VoiceOrigin = Literal["native_talker", "streaming_tts", "post_tts", "none"]
TurnTaking = Literal["model", "vad", "manual"]
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
        frame_rule: which video frames it takes and as what; None: it takes none.
        max_media_s: longest file it can take whole, or None for no limit.
        gpus: GPUs one worker needs.
        codec_hop_samples: its chunks are multiples of this many output samples, or None.
        input_rate: samples per second at which the model itself hears; units are always 16 kHz,
            a model of another rate resamples them as a stream.
        max_sessions: files that one worker may run side by side; above 1 the model has `share`.
        turn_taking: who decides that the assistant's turn has come: the model itself, a voice
            activity detector in front of it, or the client.
        secrets: names of the environment variables that it reads keys from. A key is never a
            setting, so that none can reach provenance, logs or recorded messages.
    """

    unit_samples: int
    output_rate: int
    clock: Clock
    voice_origin: VoiceOrigin
    frame_rule: FrameRule | None = EVERY_FRAME
    max_media_s: float | None = None
    gpus: int = 0
    codec_hop_samples: int | None = None
    input_rate: int = SAMPLE_RATE
    max_sessions: int = 1
    turn_taking: TurnTaking = "model"
    secrets: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Everything above as JSON values, for provenance."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return values | {
            "frame_rule": None if self.frame_rule is None else self.frame_rule.record(),
            "secrets": list(self.secrets),
        }


@dataclass(frozen=True)
class Identity:
    """Which model really ran; goes into provenance.

    Attributes:
        name: the model's public name.
        weights: hash or pinned revision of the weights, or None where there are none.
        dtypes: how many numbers of the weights have each type (``{"bfloat16": 8.9e9}``), as they
            are computed with; empty where it is not known.
        quantisation: the method, if weights were given fewer bits than they were published with.
        as_released: parts that were *published* in few bits, with those bits.
        versions: packages and servers that compute, by name.
        device: the GPU's name, or ``cpu``; None where it is not known.
        max_context_tokens: the limit of its context, if it has one.
        detail: whatever else says what ran: JSON values.
    """

    name: str
    weights: str | None
    dtypes: Mapping[str, int] = field(default_factory=dict)
    quantisation: str | None = None
    as_released: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    max_context_tokens: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Everything above as JSON values, for provenance."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}


class ModelBroken(Exception):
    """Process, server or device is beyond use: the worker ends, and a fresh one goes on.

    Every other exception fails the sample in flight alone.
    """


class DuplexModel(ABC):
    """A full-duplex model: one file at a time, one unit at a time.

    Attributes:
        sessions: files that the worker will run side by side; set before `load`, 1 unless the
            model's `max_sessions` allows more.

    Order of calls: ``load()`` once per process; then for each sample ``open``, ``push`` for every
    unit in order, ``finish``, ``close``. `close` is called in every case, also after an error,
    and must leave no state behind: the next sample's result may not depend on this one.
    Errors raise (`ModelBroken` if no other sample could succeed either); a model never returns a
    result it made up.
    """

    sessions: int = 1

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

    def preflight(self) -> Sequence[str]:
        """What would keep `load` from succeeding, found in seconds without loading anything.

        Returns:
            One sentence for each problem, with its remedy: a missing file, an unpinned revision.
        """
        return ()

    @abstractmethod
    def load(self) -> Identity:
        """Load weights or start servers, warm up; called once, before the first sample."""

    def share(self) -> DuplexModel:
        """Another session of this loaded model: the same weights, and nothing else in common.

        Called after `load`, once for each session beside the first, and only where `max_sessions`
        is above 1. Each session takes files of its own on a thread of its own, while the others
        run, and says of every file exactly what it would say alone; only its times are shared.
        `unload` of the first session is called last.

        Raises:
            HfdError: there is no memory for it.
        """
        raise NotImplementedError(f"{type(self).__name__} runs one file at a time")

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
