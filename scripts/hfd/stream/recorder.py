"""Stamps what a model says, queues its sound, and writes both to the trace as they happen."""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Event, Heard, Metric, Text
from hfd.stream.clock import Moment, RunClock
from hfd.stream.playback import Playback
from hfd.stream.trace import TraceWriter

_CUTS = (ControlKind.STOP, ControlKind.INTERRUPT)
FORGIVEN_EVENT_NS = 20_000_000
FORGIVEN_SAMPLE_NS = 500_000_000
"""Most that writing one event, and all events of a sample, may take out of the clock. A disk that
stalls for longer counts as compute; the audit demands these bounds of every trace (A4)."""


@dataclass
class Outputs:
    """Everything that came out of one sample, in order; times in media seconds."""

    texts: list[dict[str, Any]] = field(default_factory=list)
    audio: list[dict[str, Any]] = field(default_factory=list)
    controls: list[dict[str, Any]] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    metrics: int = 0
    clipped: int = 0
    underrun_samples: int = 0


class Recorder:
    """Receives a model's events from any thread.

    Until `start` gives it a clock only metrics and controls are taken (time 0, no input yet);
    after `stop` nothing is.
    """

    def __init__(self, trace: TraceWriter, output_rate: int) -> None:
        self.outputs = Outputs()
        self.playback = Playback(output_rate)
        self._trace = trace
        self._lock = threading.Lock()
        self._clock: RunClock | None = None
        self._stepper = 0
        self._pushed = -1
        self._stopped = False
        self._turn_open = False
        self._forgiven_ns = 0
        self._half = ""

    def start(self, clock: RunClock) -> None:
        self._clock = clock
        self._stepper = threading.get_ident()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True

    def input(self, unit: int, **fields: Any) -> None:
        """Write an ``input`` line; outputs depend on this unit from now on."""
        with self._lock:
            # Read inside the lock, like every time in the trace: lines stay in order of time.
            self._trace.write("input", self._now(), unit=unit, **fields)
            self._pushed = unit

    def line(self, kind: str, **fields: Any) -> None:
        """Write a line of the session itself at the present time."""
        with self._lock:
            self._trace.write(kind, self._now(), **fields)

    def emit(self, event: Event) -> None:
        """Take one event at the moment it exists (the `Emit` that models are given)."""
        with self._lock:
            if self._stopped:
                raise RuntimeError(f"the sample is over, but the model still emits {event!r:.80}")
            at = self._now()
            input_seq = self._checked_input_seq(event)
            match event:
                case Text():
                    self._text(event, at, input_seq)
                case Audio():
                    self._audio(event, at, input_seq)
                case Control():
                    self._control(event, at, input_seq)
                case Heard():
                    self._heard(event, at, input_seq)
                case Metric():
                    self.outputs.metrics += 1
                    self._trace.write(
                        "metric",
                        at,
                        name=event.name,
                        values=dict(event.values),
                        input_seq=input_seq,
                    )
            if self._clock is not None and threading.get_ident() == self._stepper:
                # Another thread writes beside the step, so it takes no time from it.
                self._forgive(self._clock, time.monotonic_ns() - at.mono_ns)

    def _forgive(self, clock: RunClock, took_ns: int) -> None:
        left = FORGIVEN_SAMPLE_NS - self._forgiven_ns
        forgiven = min(took_ns, FORGIVEN_EVENT_NS, left)
        self._forgiven_ns += forgiven
        clock.forgive(forgiven)

    def _now(self) -> Moment:
        return Moment(0.0, time.monotonic_ns()) if self._clock is None else self._clock.read()

    def _checked_input_seq(self, event: Event) -> int:
        if event.input_seq is None:
            seq = self._pushed
        elif event.input_seq > self._pushed:
            raise ValueError(f"event depends on unit {event.input_seq}, which was not pushed yet")
        else:
            seq = event.input_seq
        if seq < 0 and isinstance(event, Text | Audio):
            raise ValueError("a model cannot speak before its first unit")
        return seq

    def _text(self, event: Text, at: Moment, input_seq: int) -> None:
        delta, self._half = whole_characters(self._half + event.delta)
        if not delta:
            return
        self.outputs.texts.append({"t": at.t, "delta": delta, "input_seq": input_seq})
        self._trace.write("text", at, delta=delta, input_seq=input_seq)

    def _heard(self, event: Heard, at: Moment, input_seq: int) -> None:
        fields = {"text": event.text, "final": event.final, "input_seq": input_seq}
        self.outputs.heard.append({"t": at.t, **fields})
        self._trace.write("heard", at, **fields)

    def _audio(self, event: Audio, at: Moment, input_seq: int) -> None:
        pcm, clipped = _as_int16(event.pcm)
        if not len(pcm):
            return
        before = self.playback.end
        play_at = self.playback.add(pcm, at.t)
        if self._turn_open:
            self.outputs.underrun_samples += play_at - before
        self._turn_open = True
        self.outputs.clipped += clipped
        self.outputs.audio.append(
            {
                "t": at.t,
                "samples": len(pcm),
                "play_at_s": play_at / self.playback.rate,
                "input_seq": input_seq,
            }
        )
        self._trace.write(
            "audio",
            at,
            samples=len(pcm),
            play_at=play_at,
            pcm=base64.b64encode(pcm.tobytes()).decode(),
            clipped=clipped,
            input_seq=input_seq,
        )

    def _control(self, event: Control, at: Moment, input_seq: int) -> None:
        kind = ControlKind(event.kind)
        fields: dict[str, Any] = {}
        if kind in _CUTS:
            cut_at, cleared = self.playback.cut(at.t)
            fields = {"cut_at": cut_at, "cleared": cleared}
        if kind in (*_CUTS, ControlKind.TURN_END, ControlKind.LISTEN):
            self._turn_open = False
        detail = dict(event.detail)
        self.outputs.controls.append(
            {"t": at.t, "control": kind.value, "input_seq": input_seq, "detail": detail, **fields}
        )
        self._trace.write(
            "control", at, control=kind.value, detail=detail, input_seq=input_seq, **fields
        )


def whole_characters(text: str) -> tuple[str, str]:
    """Text without halves of surrogate pairs, and a half at its end that waits for the other.

    A server that cuts its text into UTF-16 units may cut a character in two. The halves become the
    character again; a half whose other never comes becomes U+FFFD.
    """
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    whole = text[: len(text) - len(half)]
    if not any("\ud800" <= character <= "\udfff" for character in whole):
        return whole, half
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half


def _as_int16(pcm: np.ndarray) -> tuple[np.ndarray, int]:
    """Mono samples as little-endian int16, and how many were outside [-1, 1]."""
    if pcm.ndim != 1:
        raise ValueError(f"audio must have shape [samples], not {list(pcm.shape)}")
    if pcm.dtype == np.int16:
        return pcm.astype("<i2"), 0
    if pcm.dtype != np.float32:
        raise ValueError(f"audio must be int16 or float32, not {pcm.dtype}")
    if not np.isfinite(pcm).all():
        raise ValueError("audio holds NaN or infinite samples")
    scaled = np.rint(pcm * 32768.0)
    clipped = int(np.count_nonzero(np.abs(pcm) > 1.0))
    return np.clip(scaled, -32768, 32767).astype("<i2"), clipped
