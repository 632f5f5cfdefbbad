"""Media time in one place: integers in samples, seconds only at the edges.

Compiled files are 16 kHz mono and 5 video frames a second, so one frame is exactly 3200 samples and
no time in them ever needs a rounded float.
"""

from __future__ import annotations

import math
from fractions import Fraction

SAMPLE_RATE = 16_000
"""Audio samples per second of every compiled file."""
FPS = 5
"""Video frames per second of every compiled file."""
VIDEO_FRAME_SAMPLES = SAMPLE_RATE // FPS
"""Samples under one video frame (3200)."""
PAD_VIDEO_FRAMES = 15
"""Frozen video frames at the end of every compiled file (3 s)."""
PAD_SAMPLES = PAD_VIDEO_FRAMES * VIDEO_FRAME_SAMPLES
"""Silent samples at the end of every compiled file (48 000)."""


def seconds_to_samples(seconds: float | Fraction, rate: int = SAMPLE_RATE) -> int:
    """The sample nearest to a time; ties go to the later sample."""
    return math.floor(Fraction(seconds) * rate + Fraction(1, 2))


def samples_to_seconds(samples: int, rate: int = SAMPLE_RATE) -> float:
    """The time at which a sample starts, in seconds."""
    return samples / rate
