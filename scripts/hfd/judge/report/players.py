"""Compact copies for the players: user left, assistant right, Opus in WebM."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import av
import numpy as np
import soxr

from hfd.files import atomic_path

RATE = 24_000
BIT_RATE = 40_000
"""Two voices; about 50 KB for ten seconds."""
_OPTIONS = {"compression_level": "0", "application": "lowdelay"}
"""Without Opus's speech codec, which costs twice the time."""
_RECIPE = f"opus-{RATE}-{BIT_RATE}-4"


def player_file(
    target: Path, user: np.ndarray, assistant: np.ndarray, rate: int, cache: Path | None, key: str
) -> None:
    """Write the stereo copy to `target`, from the cache where it has been made before.

    Args:
        user: int16 at 16 kHz, shape [samples].
        assistant: int16 at `rate`, shape [samples].
        key: what the copy depends on (hashes of both sounds).
    """
    name = hashlib.sha256(f"{_RECIPE}:{key}".encode()).hexdigest()[:32]
    kept = cache / f"{name}.webm" if cache else None
    if kept is None or not kept.is_file():
        kept = kept or target
        with atomic_path(kept) as part:
            _encode(part, _stereo(user, assistant, rate))
    if kept != target:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            os.link(kept, target)
        except OSError:
            shutil.copyfile(kept, target)


def _stereo(user: np.ndarray, assistant: np.ndarray, rate: int) -> np.ndarray:
    left, right = _resampled(user, 16_000), _resampled(assistant, rate)
    length = max(len(left), len(right))
    both = _hiss(2 * length).reshape(-1, 2)
    for side, pcm in enumerate((left, right)):
        room = both[: len(pcm), side]
        np.clip(room.astype(np.int32) + pcm, -32768, 32767, out=room, casting="unsafe")
    return both.reshape(1, -1)


def _hiss(samples: int) -> np.ndarray:
    """Noise of one bit (-90 dB), so that the encoder never sees digital silence.

    Its filters would then run on numbers so small that a processor computes with them many times
    more slowly.
    """
    noise = np.random.default_rng(0).integers(-1, 2, RATE, dtype=np.int16)
    return np.resize(noise, samples)


def _resampled(pcm: np.ndarray, rate: int) -> np.ndarray:
    if rate == RATE:
        return pcm
    return soxr.resample(pcm, rate, RATE, quality="MQ")


def _encode(path: Path, interleaved: np.ndarray) -> None:
    with av.open(str(path), "w", format="webm") as container:
        stream = container.add_stream("libopus", rate=RATE, layout="stereo")
        stream.bit_rate = BIT_RATE
        stream.options = dict(_OPTIONS)
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(interleaved), format="s16", layout="stereo"
        )
        frame.sample_rate = RATE
        frame.pts = 0
        fifo = av.AudioFifo()
        fifo.write(frame)
        while piece := fifo.read(RATE, partial=True):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))


def peaks(pcm: np.ndarray, rate: int, seconds: float, points: int = 500) -> list[int]:
    """Loudest magnitude in each of `points` equal slices of `seconds`, 0-100 (square root)."""
    edges = np.linspace(0, seconds * rate, points + 1).astype(int)
    size = np.abs(np.pad(pcm, (0, max(0, edges[-1] - len(pcm)))).astype(np.int32))
    loudest = np.maximum.reduceat(size, np.minimum(edges[:-1], max(0, len(size) - 1)))
    return np.rint(100 * np.sqrt(loudest / 32768)).astype(int).tolist()
