"""Where a track holds speech: Silero's decision, sharpened where the track allows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import soxr

from hfd.judge.definitions import STATED
from hfd.judge.intervals import Interval, merged
from hfd.judge.silero import STEP, speech_chances
from hfd.judge.sound import audible
from hfd.media_time import SAMPLE_RATE

MERGE_GAP_S = 0.3
"""Pauses up to this long belong to one segment."""
SHORTEST_S = 0.1
_REFINE_S = 0.15
_MARGIN_S = 0.3
_SHORTEST_SILENCE_S = 0.02
_STEP_S = STEP / SAMPLE_RATE
_PHASES = 4
"""Over as many divisions of the sound into steps an onset in noise is the mean."""
_WINDOW_S = 8 * _STEP_S
_CLOSER_STEPS = math.ceil((_MARGIN_S + _WINDOW_S + _REFINE_S) / _STEP_S) + 1
"""So many reach past every place at which an onset may be found."""


@dataclass(frozen=True)
class Onsets:
    """Three answers to "when does the sound begin", in media seconds; None where it never does."""

    first_sample: float | None
    first_audible: float | None
    first_voice: float | None


@dataclass(frozen=True)
class Run:
    """A part of a track that is not digital silence.

    Attributes:
        place: where it lies, in seconds.
        sound: int16 at 16 kHz, shape [samples].
        chances: the detector's output for each 32 ms of it, shape [steps].
        closer: what a closer look at a window found, by the window's number.
    """

    place: Interval
    sound: np.ndarray
    chances: np.ndarray
    closer: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def onset(self, coarse: float, chance: float) -> float:
        """Where speech reaches `chance` within 150 ms of `coarse`; else `coarse`.

        Seconds, counted from the run's start.
        """
        number = max(0, math.floor((coarse - _MARGIN_S) / _WINDOW_S))
        if number not in self.closer:
            self.closer[number] = _closer(self.sound, number * _WINDOW_S)
        places, chances = self.closer[number]
        near = places[(chances >= chance) & (abs(places - coarse) <= _REFINE_S)]
        return max(0.0, float(near[0])) if len(near) else coarse


@dataclass(frozen=True)
class Detection:
    """What the detector said of a track, before a threshold makes speech of it.

    Attributes:
        pcm: the track, int16, shape [samples].
        rate: its samples per second.
        runs: the parts of the track that are not digital silence.
    """

    pcm: np.ndarray
    rate: int
    runs: tuple[Run, ...]

    def segments(self, chance: float = STATED.speech_chance) -> list[Interval]:
        """Where the detector's output reaches `chance`; no segment reaches beyond the track.

        Where the track is exactly silent beside a segment, the edge moves to the first or last
        audible sample within 150 ms; elsewhere a closer look finds the onset (`Run.onset`), so
        that it hangs neither on where the detector began nor on where its steps fall. Resolution:
        50 ms, not better (docs/metrics.md).
        """
        found = [part for run in self.runs for part in self._within(run, chance)]
        return [part for part in merged(found, MERGE_GAP_S) if part.length >= SHORTEST_S]

    def _within(self, run: Run, chance: float) -> list[Interval]:
        first, last = run.place.start, run.place.end
        sharp = [
            _refined(Interval(first + p.start, min(first + p.end, last)), self.pcm, self.rate)
            for p in _runs(run.chances >= chance)
        ]
        return [
            part
            if _silent_before(part.start, self.pcm, self.rate)
            else Interval(first + run.onset(part.start - first, chance), part.end)
            for part in merged(sharp, MERGE_GAP_S)
        ]


def detect(pcm: np.ndarray, rate: int) -> Detection:
    """Silero over int16 samples, shape [samples]; digital silence is never shown to it."""
    runs = []
    for place in _sounding(pcm, rate):
        sound = _at_16_khz(pcm[round(place.start * rate) : round(place.end * rate)], rate)
        runs.append(Run(place, sound, _silero(sound)))
    return Detection(pcm, rate, tuple(runs))


def onsets(pcm: np.ndarray, rate: int, segments: list[Interval]) -> Onsets:
    """The first sample that is not zero, the first above -60 dBFS, the first speech."""
    return Onsets(
        _first(pcm != 0, rate), _first(audible(pcm), rate), segments[0].start if segments else None
    )


def _first(found: np.ndarray, rate: int) -> float | None:
    """Seconds before the first sample that is true."""
    at = int(found.argmax()) if len(found) else 0
    return at / rate if len(found) and found[at] else None


def sound_starts(pcm: np.ndarray, rate: int) -> list[float]:
    """Seconds at which audible sound begins after at least 0.3 s without any."""
    loud = np.flatnonzero(audible(pcm))
    first = np.flatnonzero(np.diff(loud, prepend=-rate) > MERGE_GAP_S * rate)
    return [float(at) / rate for at in loud[first]]


def _sounding(pcm: np.ndarray, rate: int) -> list[Interval]:
    """Parts that are not digital silence, with 0.3 s around them.

    They begin on one grid of windows for the whole track: where the steps fall in a sound does not
    hang on how long the track was silent before it.
    """
    hop = rate // 100
    blocks = np.pad(pcm, (0, -len(pcm) % hop)).reshape(-1, hop)
    loud = np.flatnonzero((blocks != 0).any(axis=1))
    if not len(loud):
        return []
    breaks = np.flatnonzero(np.diff(loud) > (2 * _MARGIN_S + _WINDOW_S) * 100)
    starts, ends = loud[np.r_[0, breaks + 1]], loud[np.r_[breaks, len(loud) - 1]] + 1
    length, second = len(pcm) / rate, hop / rate
    return [
        Interval(
            max(0.0, math.floor((a * second - _MARGIN_S) / _WINDOW_S) * _WINDOW_S),
            min(length, b * second + _MARGIN_S),
        )
        for a, b in zip(starts, ends, strict=True)
    ]


def _at_16_khz(pcm: np.ndarray, rate: int) -> np.ndarray:
    if rate == SAMPLE_RATE:
        return pcm
    sound = np.rint(soxr.resample(pcm.astype(np.float32), rate, SAMPLE_RATE))
    return np.clip(sound, -32768, 32767).astype("<i2")


def _silero(sound: np.ndarray) -> np.ndarray:
    """The detector's output for each 32 ms of int16 samples at 16 kHz, shape [steps]."""
    return speech_chances(np.pad(sound, (0, -len(sound) % STEP))[None])[0]


def _closer(sound: np.ndarray, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Places (seconds) and the detector's mean output there, from `start` on for about 0.8 s.

    The detector begins anew at `start`, once for each division of the sound into steps.
    """
    firsts = round(start * SAMPLE_RATE) - np.arange(_PHASES) * (STEP // _PHASES)
    length = _CLOSER_STEPS * STEP
    before, after = max(0, -firsts[-1]), max(0, firsts[0] + length - len(sound))
    padded = np.pad(sound, (before, after))
    windows = np.stack([padded[first + before :][:length] for first in firsts])
    starts = (firsts[:, None] + np.arange(_CLOSER_STEPS) * STEP).ravel()
    order = np.argsort(starts)
    order = order[starts[order] < len(sound)]
    chances = speech_chances(windows).ravel()[order]
    mean = np.full(_PHASES, 1 / _PHASES)
    places = np.convolve(starts[order], mean, "valid") / SAMPLE_RATE
    return places, np.convolve(chances, mean, "valid")


def _runs(speech: np.ndarray) -> list[Interval]:
    """Seconds of unbroken runs of steps with speech; `speech`: bool, shape [steps]."""
    edges = np.flatnonzero(np.diff(speech, prepend=False, append=False))
    pairs = edges.reshape(-1, 2) * _STEP_S
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


def _silent_before(start: float, pcm: np.ndarray, rate: int) -> bool:
    """Whether exact silence, or nothing at all, lies before a moment."""
    at = round(start * rate)
    return not pcm[max(0, at - round(rate * _SHORTEST_SILENCE_S)) : at].any()


def _silent_lead(window: np.ndarray, rate: int) -> int:
    """Samples of exact silence before the first audible one; 0 if there is no such silence."""
    loud = np.flatnonzero(audible(window))
    if not len(loud) or loud[0] < rate * _SHORTEST_SILENCE_S or window[: loud[0]].any():
        return 0
    return int(loud[0])
