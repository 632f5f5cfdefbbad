"""The sound of a compiled file, built sample by sample in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import soundfile
import soxr

from hfd.data.timeline import Clip, Timeline
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE

_CONTEXT = SAMPLE_RATE // 20
"""Samples around a clip that the resampler sees (50 ms), so that its edges are as in the whole."""
_SILENT = 10 ** (-60 / 20)
_UNSCALED = 2.0
_REMEDY = "Deliver the recording as wav or flac, mono or stereo"


@dataclass(frozen=True)
class Recording:
    """What a sound file holds, from its header alone."""

    path: Path
    frames: int
    rate: int

    @property
    def seconds(self) -> Fraction:
        """Exact length."""
        return Fraction(self.frames, self.rate)


@dataclass(frozen=True)
class Track:
    """A finished sound track.

    Attributes:
        pcm: int16 mono at 16 kHz, shape [timeline.samples]; zero outside the clips.
        clipped: samples that the resampler carried over full scale, and that were cut to it.
    """

    pcm: np.ndarray
    clipped: int


def probe_recording(path: Path) -> Recording:
    """Read the header of a recording.

    Raises:
        HfdError: no sound file that libsndfile reads, no samples, more than two channels.
    """
    try:
        info = soundfile.info(str(path))
    except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
        raise HfdError(f"is no sound file ({error})", file=path, remedy=_REMEDY) from error
    if not info.frames:
        raise HfdError("has no samples", file=path, remedy="Deliver the recording again")
    if info.channels > 2:
        raise HfdError(
            f"has {info.channels} channels", file=path, remedy="Mix it down to mono or stereo"
        )
    return Recording(path, info.frames, info.samplerate)


def build_track(timeline: Timeline, recordings: Sequence[Recording]) -> Track:
    """Lay the clips on silence, each at its exact sample.

    Raises:
        HfdError: a recording cannot be read, or its range is silent, not finite or not scaled.
    """
    pcm = np.zeros(timeline.samples, np.int16)
    clipped = 0
    for clip, recording in zip(timeline.clips, recordings, strict=True):
        scaled = np.rint(read_clip(clip, recording) * 32768.0)
        clipped += int(np.count_nonzero((scaled > 32767) | (scaled < -32768)))
        pcm[clip.start : clip.end] = np.clip(scaled, -32768, 32767)
    return Track(pcm, clipped)


def read_clip(clip: Clip, recording: Recording) -> np.ndarray:
    """One clip as float64 mono at 16 kHz, shape [clip.end - clip.start].

    Two channels become one by their mean. `unit` frames of the recording are exactly `hop`
    samples at 16 kHz; cutting at multiples of both keeps the resampled grid exact at any rate.
    """
    common = math.gcd(recording.rate, SAMPLE_RATE)
    unit, hop = recording.rate // common, SAMPLE_RATE // common
    source_end = clip.source_start + clip.end - clip.start
    first = (clip.source_start - _CONTEXT) // hop
    last = -(-(source_end + _CONTEXT) // hop)
    mono = _read_frames(recording, first * unit, last * unit)
    if unit != hop:
        mono = soxr.resample(mono, recording.rate, SAMPLE_RATE, quality="VHQ")
    begin = clip.source_start - first * hop
    cut = mono[begin : begin + clip.end - clip.start]
    _check_level(cut, clip, recording)
    return cut


def _read_frames(recording: Recording, start: int, end: int) -> np.ndarray:
    """Frames [start, end) as mono; silence where the recording has none."""
    begin, stop = max(start, 0), min(end, recording.frames)
    try:
        frames, _ = soundfile.read(
            str(recording.path), start=begin, stop=stop, dtype="float64", always_2d=True
        )
    except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
        raise HfdError(f"cannot be read ({error})", file=recording.path, remedy=_REMEDY) from error
    if len(frames) != stop - begin:
        raise HfdError(
            f"ends early: {begin + len(frames)} of {recording.frames} frames",
            file=recording.path,
            remedy="Deliver the recording again",
        )
    return np.pad(frames.mean(axis=1), (begin - start, end - stop))


def _check_level(samples: np.ndarray, clip: Clip, recording: Recording) -> None:
    peak = float(np.abs(samples).max())
    if not math.isfinite(peak):
        problem = "has values that are not finite numbers"
    elif peak > _UNSCALED:
        problem = f"has values up to {peak:g}; full scale is 1"
    elif peak < _SILENT:
        problem = f"is silent where the {clip.event.role} should be heard"
    else:
        return
    begin = clip.source_start / SAMPLE_RATE
    raise HfdError(
        f"{problem} (from {begin:.3f} s for {len(samples) / SAMPLE_RATE:.3f} s)",
        file=recording.path,
        remedy="Correct the source range or deliver the recording again",
    )
