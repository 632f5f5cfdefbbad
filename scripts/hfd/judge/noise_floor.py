"""How far a model differs from itself: the floor below which a difference says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.judge.endpoints import RATES, rate_of
from hfd.judge.outcome import outcome
from hfd.judge.reference import read_reference
from hfd.judge.rules.rule import Policy
from hfd.judge.sample import Record, audit_sample

SAME = "same"
"""Runs of `repeat_probe` with the sample's own seed are called ``same0``, ``same1``, …"""


def repeated(folder: Path, model: str, samples: Sequence[Sample]) -> dict[str, Any] | None:
    """The noise floor of what ``repeat_probe`` left; None where it left nothing.

    Args:
        folder: ``<folder>/<sample id>/same<n>`` are result folders.
        model: the model's name.
        samples: of the manifest.
    """
    known = [sample for sample in samples if (folder / sample.sample_id).is_dir()]
    runs: dict[str, list[Record]] = {}
    for sample in known:
        reference = read_reference(sample, None)
        for path in sorted((folder / sample.sample_id).glob(f"{SAME}[0-9]*")):
            record = audit_sample(path, model, sample.task, reference, Policy())
            runs.setdefault(path.name, []).append(record)
    whole = [records for records in runs.values() if len(records) == len(known)]
    return noise_floor(whole) if len(whole) > 1 else None


def noise_floor(runs: Sequence[Sequence[Record]]) -> dict[str, Any]:
    """How far equal runs of the same samples lie apart (the A/A floor).

    Args:
        runs: each run's records, the same samples in the same order, all with the same seed.

    Returns:
        ``flip_rate``: share of samples and pairs of runs with another outcome; ``onset_spread_s``:
        median over samples of latest minus earliest response latency; ``floors``: by metric the
        largest difference between two runs' rates (or mean latencies).
    """
    pairs = list(combinations(runs, 2))
    flips = [
        outcome(a) != outcome(b) for one, other in pairs for a, b in zip(one, other, strict=True)
    ]
    floors: dict[str, float] = {}
    for rate in RATES:
        means = [_mean([rate_of(record, rate.key) for record in run]) for run in runs]
        known = [value for value in means if value is not None]
        if len(known) > 1:
            floors[rate.key] = max(known) - min(known)
    spreads = []
    for records in zip(*runs, strict=True):
        latencies = [v for r in records if (v := r.metrics.get("h9_response_s")) is not None]
        if len(latencies) > 1:
            spreads.append(max(latencies) - min(latencies))
    latency = [_mean([r.metrics.get("h9_response_s") for r in run]) for run in runs]
    known = [value for value in latency if value is not None]
    if len(known) > 1:
        floors["h9_response_s"] = max(known) - min(known)
    return {
        "samples": len(runs[0]) if runs else 0,
        "runs": len(runs),
        "flip_rate": sum(flips) / len(flips) if flips else None,
        "onset_spread_s": sorted(spreads)[len(spreads) // 2] if spreads else None,
        "floors": floors,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None
