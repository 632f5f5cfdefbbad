"""What of a track can be heard."""

from __future__ import annotations

import numpy as np

AUDIBLE = 33
"""Smallest int16 magnitude that counts as sound (-60 dBFS)."""


def audible(pcm: np.ndarray) -> np.ndarray:
    """Where int16 samples can be heard, bool, the shape of `pcm`; needs a byte a sample."""
    return np.greater_equal(pcm, AUDIBLE) | np.less_equal(pcm, -AUDIBLE)
