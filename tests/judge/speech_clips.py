"""Human readings that ship in a PyPI package: the users' and the test models' voices."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import soundfile
import soxr

_OPENING = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, "
    "it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity, "
    "it was the season of light, it was the season of darkness."
)
TEXT = _OPENING.split(" ")


@functools.cache
def reading(name: str, rate: int) -> np.ndarray:
    """A whole recording as float32, peak 0.5, shape [samples]."""
    found = importlib.util.find_spec("moonshine_voice")
    folder = Path(found.submodule_search_locations[0]) / "assets"
    sound, own = soundfile.read(folder / f"{name}.wav", dtype="float32")
    sound = soxr.resample(sound, own, rate) if own != rate else sound
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def part(name: str, rate: int, start: float, seconds: float) -> np.ndarray:
    """`seconds` of a recording from `start` (round and round), faded in and out over 5 ms."""
    sound = reading(name, rate)
    start %= len(sound) / rate - seconds
    piece = sound[int(start * rate) : int(start * rate) + round(seconds * rate)].copy()
    ramp = np.linspace(0, 1, rate // 200, dtype=np.float32)
    piece[: len(ramp)] *= ramp
    piece[-len(ramp) :] *= ramp[::-1]
    return piece
