"""Which clips two people should listen to, cut and named so that no model can be recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hfd.data.adapter import read_adapter
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.judge.wav_check import Wav, read_wav
from hfd.media_time import SAMPLE_RATE

MOST_CLIPS = 60
BEFORE_S, AFTER_S = 1.0, 8.0
"""A clip reaches from this long before the prefix to this long after the question's end."""


@dataclass(frozen=True)
class Clip:
    """One clip, and what it hides.

    Attributes:
        name: what the raters and their files call it.
        model, sample_id: whose it is.
        wav_sha256: of the result's sound; labels of another sound are no labels of this result.
        start, end: media seconds of the cut.
    """

    name: str
    model: str
    sample_id: str
    wav_sha256: str
    start: float
    end: float


@dataclass(frozen=True)
class ClipSound:
    """A clip with its sound: int16, `user` at 16 kHz and `assistant` at `rate`, shape [samples]."""

    clip: Clip
    user: np.ndarray
    assistant: np.ndarray
    rate: int


def draw_clips(
    samples: Sequence[Sample],
    results: Mapping[str, Path],
    nonce: str,
    most: int = MOST_CLIPS,
) -> list[Clip]:
    """At most `most` clips, as many of each model as can be; their order by the nonce's hash.

    Samples in which the user hesitates and the model says something; a silent result has nothing
    to be marked.

    Args:
        results: ``results/<model>`` by model.
        nonce: the auditor's word, that decides which clips and in which order.

    Raises:
        HfdError: there is no such result.
    """
    columns = [
        _clips_of(model, folder, sorted(samples, key=lambda s: _name(nonce, model, s)), nonce)
        for model, folder in sorted(results.items(), key=lambda item: _digest(nonce, item[0]))
    ]
    drawn: list[Clip] = []
    for row in zip_longest(*columns):
        drawn += [clip for clip in row if clip is not None]
        if len(drawn) >= most:
            break
    if not drawn:
        raise HfdError(
            "hold no result with sound of a sample in which the user hesitates",
            file=", ".join(str(folder) for folder in results.values()),
            remedy="Run a model first: snakemake results_<model>",
        )
    return sorted(drawn[:most], key=lambda clip: clip.name)


def _clips_of(model: str, folder: Path, samples: Sequence[Sample], nonce: str) -> Iterator[Clip]:
    for sample in samples:
        window = _window(sample)
        wav = _sounding(folder / sample.sample_id) if window else None
        if window and wav is not None:
            end = min(window[1], max(wav.seconds, sample.duration_seconds))
            name = _name(nonce, model, sample)
            yield Clip(name, model, sample.sample_id, wav.sha256, window[0], round(end, 3))


def _window(sample: Sample) -> tuple[float, float] | None:
    """Media seconds that a clip of the sample shows; None if nobody hesitates in it."""
    adapter = read_adapter(sample.adapter) if sample.adapter and sample.adapter.is_file() else None
    if adapter is None or adapter.p0 is None or adapter.q1 is None or not sample.video.is_file():
        return None
    return round(max(0.0, adapter.p0 - BEFORE_S), 3), adapter.q1 + AFTER_S


def _sounding(folder: Path) -> Wav | None:
    path = folder / "assistant_audio.wav"
    wav = read_wav(path)[0] if path.is_file() else None
    return wav if wav is not None and wav.pcm.any() else None


def _name(nonce: str, model: str, sample: Sample) -> str:
    return _digest(nonce, model, sample.sample_id)[:12]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def sound_of(clip: Clip, sample: Sample, results: Path) -> ClipSound:
    """Cut a clip's two sides out of the compiled file and the result; silence where one ends."""
    wav = read_wav(results / clip.sample_id / "assistant_audio.wav")[0]
    if wav is None or wav.sha256 != clip.wav_sha256:
        raise HfdError("changed while the sheet was made", file=results / clip.sample_id)
    user = _cut(read_sound(sample.video), SAMPLE_RATE, clip)
    return ClipSound(clip, user, _cut(wav.pcm, wav.rate, clip), wav.rate)


def _cut(pcm: np.ndarray, rate: int, clip: Clip) -> np.ndarray:
    part = pcm[round(clip.start * rate) : round(clip.end * rate)]
    return np.pad(part, (0, round((clip.end - clip.start) * rate) - len(part)))


def sheet_key(clips: Sequence[Clip], nonce: str) -> dict[str, Any]:
    """What the sheet hides, for the audit alone; ``sheet`` names it in every rater's file."""
    listed = [asdict(clip) for clip in clips]
    digest = _digest(nonce, *(f"{clip.name}:{clip.wav_sha256}" for clip in clips))[:12]
    return {"schema": "hfd-label-key/1", "sheet": digest, "nonce": nonce, "clips": listed}
