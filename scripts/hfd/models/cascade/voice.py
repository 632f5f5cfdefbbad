"""Text to speech: hibari, one American English voice inside the package hibari-tts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import hibari
import numpy as np
import scipy.fft  # noqa: F401  hibari uses it where it is: required, so that samples are the same

RATE = hibari.Hibari.sample_rate
"""Samples per second of the voice (24 000)."""
HOP = 300
"""Samples of one frame of the vocoder; every chunk is a whole number of them."""
_QUIET = 10 ** (-50 / 20)
_LEAD_HOPS, _TAIL_HOPS = 2, 16
"""Silence left before and after a sentence: 25 ms and 200 ms."""


class Voice:
    """The agent's voice; one thread."""

    def __init__(self) -> None:
        self._tts = hibari.Hibari(threads=1)

    @staticmethod
    def weights() -> list[Path]:
        """Acoustic model, lexicons and rules inside the package."""
        return sorted((Path(hibari.__file__).parent / "assets").iterdir())

    def say(self, sentence: str, seed: Sequence[int]) -> np.ndarray:
        """Speak one sentence; the seed fixes the breath noise.

        Returns:
            float32 in [-1, 1], shape [samples], a multiple of `HOP`; the synthesiser's silence
            around the sentence is cut, since a listener would wait through it.
        """
        pcm = self._tts(sentence, seed=list(seed))
        hops = len(pcm) // HOP
        loud = np.abs(pcm[: hops * HOP]).reshape(hops, HOP).max(axis=1) > _QUIET
        if not loud.any():
            return np.zeros(0, np.float32)
        first, last = np.flatnonzero(loud)[[0, -1]]
        start, stop = max(0, first - _LEAD_HOPS), min(hops, last + 1 + _TAIL_HOPS)
        return pcm[start * HOP : stop * HOP]
