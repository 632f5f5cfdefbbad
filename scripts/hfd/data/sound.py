"""The sound of a compiled file, built sample by sample in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import soundfile
import soxr

from hfd.data.raw import MEAN
from hfd.data.timeline import Clip, Timeline
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE

_CONTEXT = SAMPLE_RATE // 20
"""Samples around a clip that the resampler sees (50 ms), so that its edges are as in the whole."""
_SILENT = 10 ** (-60 / 20)
_CANCELLED = 10 ** (-20 / 20)
"""Two channels whose mean is this much quieter than the louder one cancel each other out."""
_UNSCALED = 2.0
_BLOCK = 1 << 16
_EXACT_FORMATS = ("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU")
_EXACT_SUBTYPES = ("PCM_", "FLOAT", "DOUBLE", "ULAW", "ALAW")
"""Formats whose header is corrected by the file's size and which can be cut anywhere: one sample
is always the same number of bytes. All others are decoded from their start."""
_REMEDY = "Deliver the recording as wav or flac, mono or stereo"


@dataclass(frozen=True)
class Recording:
    """What a sound file holds.

    Attributes:
        path: the file.
        frames: samples per channel; counted by decoding unless `exact`.
        rate: samples per second.
        channels: 1 or 2.
        exact: whether the file can be cut by seeking.
        channel: what becomes of two channels: ``mean``, ``left`` or ``right``.
    """

    path: Path
    frames: int
    rate: int
    channels: int = 1
    exact: bool = True
    channel: str = MEAN

    @property
    def seconds(self) -> Fraction:
        """Exact length."""
        return Fraction(self.frames, self.rate)

    @property
    def changes(self) -> list[str]:
        """What is done to it on the way to 16 kHz mono, in words."""
        said = []
        if self.rate != SAMPLE_RATE:
            said.append(f"{self.rate} Hz to {SAMPLE_RATE} Hz")
        if self.channels > 1:
            how = "their mean" if self.channel == MEAN else f"the {self.channel} one"
            said.append(f"two channels to one, {how}")
        return [f"{self.path.name}: {change}" for change in said]


@dataclass(frozen=True)
class Track:
    """A finished sound track.

    Attributes:
        pcm: int16 mono at 16 kHz, shape [timeline.samples]; zero outside the clips.
        clipped: samples that the resampler carried over full scale, and that were cut to it.
        changes: what was done to the recordings, in words.
    """

    pcm: np.ndarray
    clipped: int
    changes: tuple[str, ...]


class _FromStart(soundfile.SoundFile):
    """A sound file that is read from its start only.

    soundfile seeks after each read wherever libsndfile says that it could; in a file whose header
    does not know its length that seek fails at the end.
    """

    def seekable(self) -> bool:
        return False


def probe_recording(path: Path, channel: str = MEAN, field: str | None = None) -> Recording:
    """Look at a recording; decode it where its header cannot know its length.

    Args:
        path: the recording.
        channel: what is to become of two channels.
        field: where that was chosen, for the error message.

    Raises:
        HfdError: no sound file that libsndfile reads, no samples, more than two channels, or a
            channel is chosen that it does not have.
    """
    try:
        info = soundfile.info(str(path))
        exact = info.format in _EXACT_FORMATS and info.subtype.startswith(_EXACT_SUBTYPES)
        frames = info.frames if exact else sum(map(len, _blocks(path)))
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise HfdError(f"is no sound file ({error})", file=path, remedy=_REMEDY) from error
    if not frames:
        raise HfdError(
            "has no samples, by its header",
            file=path,
            remedy="Deliver the recording again, or write its header anew (ffmpeg -i OLD NEW)",
        )
    if info.channels > 2:
        raise HfdError(
            f"has {info.channels} channels", file=path, remedy="Mix it down to mono or stereo"
        )
    if info.channels == 1 and channel != MEAN:
        raise HfdError(
            f"has one channel, none of them the {channel} one",
            file=path,
            field=field,
            remedy="Leave channel out",
        )
    return Recording(path, frames, info.samplerate, info.channels, exact, channel)


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
    changes = dict.fromkeys(change for recording in recordings for change in recording.changes)
    return Track(pcm, clipped, tuple(changes))


def read_clip(clip: Clip, recording: Recording) -> np.ndarray:
    """One clip as float64 mono at 16 kHz, shape [clip.end - clip.start].

    `unit` frames of the recording are exactly `hop` samples at 16 kHz; cutting at multiples of
    both keeps the resampled grid exact at any rate.
    """
    common = math.gcd(recording.rate, SAMPLE_RATE)
    unit, hop = recording.rate // common, SAMPLE_RATE // common
    source_end = clip.source_start + clip.end - clip.start
    first = (clip.source_start - _CONTEXT) // hop
    last = -(-(source_end + _CONTEXT) // hop)
    mono = _mono(_read_frames(recording, first * unit, last * unit), clip, recording)
    if unit != hop:
        mono = soxr.resample(mono, recording.rate, SAMPLE_RATE, quality="VHQ")
    begin = clip.source_start - first * hop
    cut = mono[begin : begin + clip.end - clip.start]
    _check_level(cut, clip, recording)
    return cut


def _blocks(path: Path) -> Iterator[np.ndarray]:
    """The whole file as float64, shape [frames, channels] each."""
    with _FromStart(str(path)) as stream:
        while len(block := stream.read(_BLOCK, dtype="float64", always_2d=True)):
            yield block


def _cut(blocks: Iterator[np.ndarray], begin: int, stop: int) -> np.ndarray:
    """Frames [begin, stop) of the file that the blocks are of; nothing else is kept."""
    kept: list[np.ndarray] = []
    at = 0
    for block in blocks:
        kept.append(block[max(0, begin - at) : max(0, stop - at)])
        at += len(block)
        if at >= stop:
            break
    return np.concatenate(kept)


def _read_frames(recording: Recording, start: int, end: int) -> np.ndarray:
    """Frames [start, end), shape [frames, channels]; silence where the recording has none."""
    begin, stop = max(start, 0), min(end, recording.frames)
    try:
        if recording.exact:
            frames, _ = soundfile.read(
                str(recording.path), start=begin, stop=stop, dtype="float64", always_2d=True
            )
        else:
            frames = _cut(_blocks(recording.path), begin, stop)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise HfdError(f"cannot be read ({error})", file=recording.path, remedy=_REMEDY) from error
    if len(frames) != stop - begin:
        raise HfdError(
            f"ends early: {begin + len(frames)} of {recording.frames} frames",
            file=recording.path,
            remedy="Deliver the recording again",
        )
    return np.pad(frames, ((begin - start, end - stop), (0, 0)))


def _mono(frames: np.ndarray, clip: Clip, recording: Recording) -> np.ndarray:
    """One channel out of shape [frames, channels]: the chosen one, or the mean of both."""
    if recording.channel != MEAN:
        return np.ascontiguousarray(frames[:, 0 if recording.channel == "left" else -1])
    mean: np.ndarray = frames.mean(axis=1)
    loudest = float(np.sqrt(np.max(np.mean(frames**2, axis=0))))
    if loudest > _SILENT and np.sqrt(np.mean(mean**2)) < _CANCELLED * loudest:
        raise HfdError(
            "its two channels cancel each other out in their mean (antiphase)",
            file=recording.path,
            field=f"{clip.event.field}.channel",
            remedy="Write channel: left (or right) for this question in the raw row",
        )
    return mean


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
