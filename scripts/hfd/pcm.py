"""Samples as int16 and as float32, the same everywhere."""

from __future__ import annotations

import numpy as np


def to_int16(pcm: np.ndarray) -> np.ndarray:
    """Float samples in [-1, 1] as int16; exact for samples that came from int16."""
    return np.clip(np.rint(pcm * 32768.0), -32768, 32767).astype("<i2")


def to_float32(samples: np.ndarray) -> np.ndarray:
    """Decoded samples of any integer or float type as float32 in [-1, 1]."""
    if samples.dtype.kind == "f":
        return samples.astype(np.float32, copy=False)
    return (samples / float(-np.iinfo(samples.dtype).min)).astype(np.float32)
