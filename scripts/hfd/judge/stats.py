"""Intervals and tests for tables: small, exact where that is cheap, deterministic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as scipy_stats

Z95 = 1.959963984540054
_DRAWS = 2000


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, and how many samples it rests on."""

    value: float
    low: float
    high: float
    n: int


def wilson(hits: int, n: int) -> Estimate | None:
    """A rate with Wilson's 95 % interval; None without samples."""
    if not n:
        return None
    rate = hits / n
    centre = (rate + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * math.sqrt(rate * (1 - rate) / n + Z95**2 / (4 * n * n))
    return Estimate(rate, max(0.0, centre - half), min(1.0, centre + half), n)


def bootstrap(values: Sequence[float], quantile: float, seed: int = 0) -> Estimate | None:
    """A quantile with its percentile-bootstrap 95 % interval (2000 draws, fixed seed)."""
    if not len(values):
        return None
    data = np.asarray(values, float)
    draws = np.random.default_rng(seed).choice(data, (_DRAWS, len(data)))
    low, high = np.quantile(np.quantile(draws, quantile, axis=1), [0.025, 0.975])
    return Estimate(float(np.quantile(data, quantile)), float(low), float(high), len(data))


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float | None:
    """Exact two-sided McNemar p for paired outcomes; None where no pair differs."""
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    if not only_first + only_second:
        return None
    test = scipy_stats.binomtest(only_first, only_first + only_second)
    return float(test.pvalue)


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided Wilcoxon signed-rank p for paired values; None where no pair differs."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    if not len(difference) or not difference.any():
        return None
    return float(scipy_stats.wilcoxon(difference).pvalue)
