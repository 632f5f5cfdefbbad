"""What a compiled file's decoded frames must be, for whoever reads one.

The check, the stream of units and the judge all ask here: what passes the check can be streamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from hfd.data.media import open_media
from hfd.errors import HfdError
from hfd.media_time import FPS, SAMPLE_RATE
from hfd.pcm import to_float32, to_int16

ROUNDING = SAMPLE_RATE // 500
"""Samples (2 ms) that a time stamp may be off: some containers round to whole milliseconds."""
MAX_HOLE = SAMPLE_RATE // 20
"""A hole or an overlap in the sound up to this many samples (50 ms) is placed as the time stamps
say, the hole as silence; a larger one is a damaged file."""
_OFF_GRID_S = Fraction(1, 1000)
_REMEDY = "The file is damaged: deliver or compile it again"


@dataclass(frozen=True)
class Hole:
    """A place where time stamps and samples disagree.

    Attributes:
        at: sample of the track at which it lies.
        samples: its length; negative where sound overlaps, and the later sound is cut.
    """

    at: int
    samples: int


class SoundTrack:
    """Puts decoded sound at its time: the first sample given back is that of media time 0.

    Attributes:
        end: samples given back so far.
        holes: holes and overlaps that were placed, the start of the track not among them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.end = 0
        self.holes: list[Hole] = []

    def add(self, frame: av.AudioFrame) -> np.ndarray:
        """The next samples of the track, float32, shape [samples].

        Raises:
            HfdError: not 16 kHz mono, or a hole or an overlap over `MAX_HOLE`.
        """
        if frame.sample_rate != SAMPLE_RATE or frame.layout.nb_channels != 1:
            raise HfdError(
                f"sound is {frame.sample_rate} Hz with {frame.layout.nb_channels} channels",
                file=self._path,
                remedy="Compiled files are 16 kHz mono: deliver or compile it again",
            )
        samples = to_float32(frame.to_ndarray()[0])
        start = self.end
        if frame.pts is not None:
            start = round(frame.pts * (frame.time_base or 0) * SAMPLE_RATE)
        samples = self._placed(samples, start)
        self.end += len(samples)
        return samples

    def _placed(self, samples: np.ndarray, start: int) -> np.ndarray:
        gap = start - self.end
        if self.end == 0:
            return samples[-gap:] if gap < 0 else np.pad(samples, (gap, 0))
        if abs(gap) <= ROUNDING:
            return samples
        if abs(gap) > MAX_HOLE:
            raise HfdError(
                f"sound jumps from {self.end / SAMPLE_RATE:.3f} s to {start / SAMPLE_RATE:.3f} s",
                file=self._path,
                remedy=_REMEDY,
            )
        self.holes.append(Hole(self.end, gap))
        return samples[-gap:] if gap < 0 else np.pad(samples, (gap, 0))


def check_frame_time(time: Fraction | None, number: int, path: Path) -> None:
    """Video frame `number` lies at number/5 s.

    Args:
        time: its time in seconds, or None where the file does not say it.

    Raises:
        HfdError: it does not.
    """
    if time is None or abs(time - Fraction(number, FPS)) > _OFF_GRID_S:
        found = f"{float(time):.3f} s" if time is not None else "no time"
        raise HfdError(
            f"video frame {number} lies at {found}, not at {number / FPS:.1f} s",
            file=path,
            remedy="The file is not on the 5 fps grid: deliver or compile it again",
        )


def check_frame_count(packets: int, decoded: int, path: Path) -> None:
    """Every video packet has become a frame.

    Raises:
        HfdError: frames are missing.
    """
    if packets != decoded:
        raise HfdError(
            f"has {packets} video frames but only {decoded} can be decoded",
            file=path,
            remedy=_REMEDY,
        )


def frame_time(frame: av.VideoFrame) -> Fraction | None:
    """The frame's exact time in seconds."""
    if frame.pts is None or frame.time_base is None:
        return None
    return frame.pts * frame.time_base


def read_sound(path: Path) -> np.ndarray:
    """The whole sound of a compiled file as int16, shape [samples], from media time 0.

    Raises:
        HfdError: it cannot be opened, has no sound, or is refused by `SoundTrack`.
        av.error.FFmpegError: it cannot be decoded.
    """
    track = SoundTrack(path)
    with open_media(path) as container:
        if not container.streams.audio:
            return np.zeros(0, np.int16)
        parts = [track.add(frame) for frame in container.decode(audio=0)]
    return to_int16(np.concatenate(parts)) if parts else np.zeros(0, np.int16)
