"""A coarse print of a voice: pitch and long-term spectrum, enough to notice another speaker.

It tells a second synthesiser in a set of samples, not who is speaking; the audit uses it for
outliers within one model only.
"""

from __future__ import annotations

import itertools

import numpy as np

from hfd.judge.intervals import Interval

_BANDS = 24
_TOP_HZ = 3800.0
_LONGEST_S = 8.0
_SHORTEST_S = 1.2


def voiceprint(pcm: np.ndarray, rate: int, segments: list[Interval]) -> list[float] | None:
    """Median pitch (semitones over 50 Hz) and mean log spectrum in 24 mel bands (dB, mean 0).

    Args:
        pcm: int16 samples, shape [samples].
        segments: where speech is; up to 8 s of it are used.

    Returns:
        25 numbers, or None for less than 1.2 s of speech.
    """
    speech = np.concatenate(
        [pcm[int(part.start * rate) : int(part.end * rate)] for part in segments]
        or [np.zeros(0, "<i2")]
    )[: int(_LONGEST_S * rate)].astype(np.float64)
    if len(speech) < _SHORTEST_S * rate:
        return None
    frame = round(0.04 * rate)
    frames = speech[: len(speech) // frame * frame].reshape(-1, frame)
    power = (frames**2).mean(axis=1)
    frames = frames[power > power.mean() * 0.1]
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(frame), 2 * frame, axis=1)) ** 2
    pitch = _pitch(spectrum, rate)
    bands = _bands(spectrum.mean(axis=0), rate)
    return [round(float(value), 3) for value in (pitch, *bands)]


def _pitch(spectrum: np.ndarray, rate: int) -> float:
    """Median over voiced frames of the autocorrelation's peak between 60 and 400 Hz."""
    lags = np.fft.irfft(spectrum, axis=1)
    low, high = rate // 400, rate // 60
    window = lags[:, low:high] / np.maximum(lags[:, :1], 1e-9)
    best = window.argmax(axis=1)
    voiced = window.max(axis=1) > 0.35
    if not voiced.any():
        return 0.0
    hertz = rate / (low + best[voiced])
    return float(12 * np.log2(np.median(hertz) / 50))


def _bands(power: np.ndarray, rate: int) -> np.ndarray:
    top = min(_TOP_HZ, rate / 2)
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + top / 700), _BANDS + 1) / 2595) - 1)
    hertz = np.linspace(0, rate / 2, len(power))
    level = [
        10 * np.log10(power[(hertz >= a) & (hertz < b)].mean() + 1e-3)
        if ((hertz >= a) & (hertz < b)).any()
        else 0.0
        for a, b in itertools.pairwise(edges)
    ]
    return np.array(level) - np.mean(level)
