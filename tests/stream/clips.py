"""Compiled files with a known content: video frame k is k bits of light, sound is a ramp."""

from __future__ import annotations

import numpy as np

PICTURE = 3200


def picture(index: int, width: int = 64, height: int = 48) -> np.ndarray:
    """A video frame whose number can be read back: 8 vertical bars, one per bit."""
    bars = np.repeat([(255 if index >> bit & 1 else 0) for bit in range(8)], width // 8)
    return np.broadcast_to(bars[None, :, None], (height, width, 3)).astype(np.uint8)


def number_of(rgb: np.ndarray) -> int:
    """The number that `picture` drew, read from a decoded video frame."""
    bars = rgb.mean(axis=(0, 2)).reshape(8, -1).mean(axis=1) > 127
    return sum(1 << bit for bit in range(8) if bars[bit])


def sound(samples: int) -> np.ndarray:
    """int16 noise that is the same on every run."""
    return np.random.default_rng(7).integers(-9000, 9000, samples).astype("<i2")
