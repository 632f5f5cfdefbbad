"""Units: the slices of media time that a model is fed, and what it is told before the first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import av
import numpy as np

from hfd.media_time import SAMPLE_RATE, VIDEO_FRAME_SAMPLES
from hfd.video_frames import upright_rgb, video_frame_digest


@dataclass(frozen=True)
class Frame:
    """One video frame of a compiled file, turned into RGB when a model asks for it.

    Attributes:
        index: number of the video frame in the file; its pts is exactly ``index / 5`` seconds.
        image: the video frame as it was decoded.
    """

    index: int
    image: av.VideoFrame

    @property
    def pts_samples(self) -> int:
        """Time of the video frame in 16 kHz samples."""
        return self.index * VIDEO_FRAME_SAMPLES

    @cached_property
    def rgb(self) -> np.ndarray:
        """uint8, shape [height, width, 3], upright."""
        return upright_rgb(self.image)

    def digest(self) -> bytes:
        """The 32 bytes by which the video frame is known in traces and checks."""
        return video_frame_digest(self.image)


@dataclass(frozen=True)
class Unit:
    """Media time ``[start, start + len(pcm))``, in samples at 16 kHz.

    Attributes:
        index: number of the unit in the file, from 0.
        start: first sample of the unit.
        pcm: float32 mono in [-1, 1], shape [unit_samples]; the last unit is zero-filled.
        frames: every 5 fps frame whose pts lies in the unit, in order (may be empty).
        valid_samples: how many samples of `pcm` come from the file.
        is_last: whether the file ends in this unit; nothing is ever sent after it.
        taken: the frames that the model's frame rule chose for this unit (`hfd.duplex.frames`);
            the newest of them may have begun in an earlier unit.
    """

    index: int
    start: int
    pcm: np.ndarray
    frames: tuple[Frame, ...]
    valid_samples: int
    is_last: bool
    taken: tuple[Frame, ...] = ()

    @property
    def t0(self) -> float:
        """Start of the unit in media seconds."""
        return self.start / SAMPLE_RATE

    @property
    def t1(self) -> float:
        """Media second at which the unit's last sample exists."""
        return (self.start + len(self.pcm)) / SAMPLE_RATE


@dataclass(frozen=True)
class SampleInfo:
    """What a model may know of a sample before its first unit: never its events or its text.

    Attributes:
        sample_id: the sample's id.
        media_s: length of the compiled file in seconds (with its 3 s tail).
        width, height: upright video frame size in pixels.
        seed: the sample's own seed, derived from the run's seed and the id.
        scratch: an empty folder for the model's own side files (raw frames of a server);
            what is left in it is kept beside the result.
    """

    sample_id: str
    media_s: float
    width: int
    height: int
    seed: int
    scratch: Path
