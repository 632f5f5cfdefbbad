"""Intervals and tests for the tables, on scipy and statsmodels; every draw has a fixed seed.

Their large parts are imported where they are used: they take seconds, which an audit of few samples
and every `verify_results.py` would spend for nothing.

Samples that share a source (one video, one speaker) are not independent: intervals and tests draw
and flip whole *clusters*. Without such a name each sample is its own cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

ALPHA = 0.05
POWER = 0.8
DRAWS = 2000
FLIPS = 19_999
"""Sign flips; fewer clusters than log2 of it are flipped in every way (an exact test).

The smallest p is 2 in so many: corrected over five models' 250 tests it must be below `ALPHA`.
"""


_NORMAL = NormalDist()
_BATCH = 1000  # flips in memory at a time
_CELLS = 1_000_000  # draws times values in memory at a time


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, and how many samples it rests on.

    The interval is None where all samples are of one cluster: what is drawn again is always the
    same, and that says nothing of other clusters.
    """

    value: float
    low: float | None
    high: float | None
    n: int


def wilson(hits: int, n: int) -> Estimate | None:
    """A rate with Wilson's 95 % interval; None without samples."""
    if not n:
        return None
    share, z = hits / n, _NORMAL.inv_cdf(1 - ALPHA / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half), n)


def rate(hits: Sequence[bool], clusters: Sequence[str]) -> Estimate | None:
    """A rate with its 95 % interval: Wilson's, or by cluster bootstrap where samples share one.

    Args:
        hits: one for each sample.
        clusters: the cluster of each.
    """
    if len(set(clusters)) == len(clusters):
        return wilson(sum(hits), len(hits))
    return mean(np.asarray(hits, float), clusters)


def quantile(values: Sequence[float], q: float, clusters: Sequence[str]) -> Estimate | None:
    """A quantile with its bootstrap 95 % interval, clusters drawn whole."""
    if not len(values):
        return None
    data = np.asarray(values, float)
    members = _members(clusters)
    random = np.random.default_rng(0)
    if len(members) == len(data):
        draws = np.quantile(random.choice(data, (DRAWS, len(data))), q, axis=1)
    else:
        drawn = random.integers(0, len(members), (DRAWS, len(members)))
        draws = np.concatenate(
            [
                _drawn_quantiles(data, members, part, q)
                for part in np.array_split(drawn, math.ceil(DRAWS * len(data) / _CELLS))
            ]
        )
    return _estimate(float(np.quantile(data, q)), draws, len(data), len(members))


def _drawn_quantiles(
    data: np.ndarray, members: Sequence[np.ndarray], drawn: np.ndarray, q: float
) -> np.ndarray:
    """The quantile (numpy's default, linear) of each row of drawn clusters.

    No row is sorted: in the values sorted once, a row is known by how often each was drawn.
    """
    owner = np.empty(len(data), int)
    for number, rows in enumerate(members):
        owner[rows] = number
    order = np.argsort(data, kind="stable")
    times = np.zeros((len(drawn), len(members)), np.int32)
    np.add.at(times, (np.arange(len(drawn))[:, None], drawn), 1)
    reached = np.cumsum(times[:, owner[order]], axis=1, dtype=np.int32)
    place = q * (reached[:, -1] - 1)
    below = np.floor(place).astype(np.int32)
    found = [
        data[order[(reached <= at[:, None]).sum(axis=1)]]
        for at in (below, np.minimum(below + 1, reached[:, -1] - 1))
    ]
    return found[0] + (found[1] - found[0]) * (place - below)


def mean(values: Sequence[float] | np.ndarray, clusters: Sequence[str]) -> Estimate | None:
    """A mean with its bootstrap 95 % interval, clusters drawn whole."""
    if not len(values):
        return None
    data = np.asarray(values, float)
    members = _members(clusters)
    sums = np.array([data[rows].sum() for rows in members])
    sizes = np.array([len(rows) for rows in members])
    drawn = np.random.default_rng(0).integers(0, len(members), (DRAWS, len(members)))
    draws = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return _estimate(float(data.mean()), draws, len(data), len(members))


def sign_flip(differences: Sequence[float] | np.ndarray, clusters: Sequence[str]) -> float:
    """Two-sided p of paired differences under "which model is which does not matter".

    The signs of whole clusters are flipped together; the statistic is the sum of all differences.
    1.0 where no pair differs.
    """
    from scipy import stats

    data = np.asarray(differences, float)
    sums = np.array([data[rows].sum() for rows in _members(clusters)])
    sums = sums[sums != 0]  # their sign says nothing
    if not len(sums):
        return 1.0
    if np.all(np.abs(sums) == abs(sums[0])):  # yes/no values: the flips are a binomial (McNemar)
        return float(stats.binomtest(int((sums > 0).sum()), len(sums)).pvalue)
    found = stats.permutation_test(
        (sums,),
        lambda drawn, axis: np.sum(drawn, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        batch=_BATCH,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def worst_rank(
    first: Sequence[float | None], second: Sequence[float | None], clusters: Sequence[str]
) -> tuple[float, float]:
    """Compare latencies with no answer as the worst of all, instead of leaving it out.

    Returns:
        Of the pairs the share in which `first` is the quicker one minus the share in which
        `second` is, and the two-sided p of that (sign flip). Two without an answer are a tie.
    """
    a = np.array([math.inf if value is None else value for value in first])
    b = np.array([math.inf if value is None else value for value in second])
    with np.errstate(invalid="ignore"):
        wins = np.where(a == b, 0.0, np.sign(b - a))
    return float(wins.mean()), sign_flip(wins, clusters)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the given order."""
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, alpha=ALPHA, method="holm")[1]]


def detectable_difference(n: int, discordant: float) -> float | None:
    """Smallest difference of two paired rates that n pairs find with 80 % power at 5 %.

    Args:
        n: number of pairs.
        discordant: share of pairs in which the two models differ.

    Returns:
        The difference as a share, by the normal approximation of McNemar's test; None where even
        the largest possible one (all discordant pairs in one direction) is not found.
    """
    if n < 2 or discordant <= 0:
        return None
    from scipy.optimize import brentq

    alpha, power = _NORMAL.inv_cdf(1 - ALPHA / 2), _NORMAL.inv_cdf(POWER)

    def missing(difference: float) -> float:
        spread = math.sqrt(max(discordant - difference**2, 0.0))
        return difference * math.sqrt(n) - alpha * math.sqrt(discordant) - power * spread

    if missing(discordant) < 0:
        return None
    return float(brentq(missing, 0.0, discordant))


def restricted(value: float | None, horizon: float) -> float:
    """A latency, at most `horizon` seconds; no answer within it counts as the horizon itself."""
    return horizon if value is None else min(value, horizon)


def _members(clusters: Sequence[str]) -> list[np.ndarray]:
    """Positions of each cluster's samples, clusters in order of their names."""
    names, index = np.unique(np.asarray(clusters, dtype=object).astype(str), return_inverse=True)
    order = np.argsort(index, kind="stable")
    return np.split(order, np.cumsum(np.bincount(index, minlength=len(names)))[:-1])


def _estimate(value: float, draws: np.ndarray, n: int, clusters: int) -> Estimate:
    """Percentile interval, widened for few clusters as Hesterberg (2015) has it.

    Percentiles alone are too narrow by the square root of (clusters - 1) / clusters and by the
    normal in place of the t distribution: with 17 clusters they cover 90 % instead of 95 %.
    """
    if clusters < 2:
        return Estimate(value, None, None, n)
    from scipy.special import stdtrit

    t = float(stdtrit(clusters - 1, 1 - ALPHA / 2)) * math.sqrt(clusters / (clusters - 1))
    share = _NORMAL.cdf(-t)
    low, high = np.quantile(draws, [share, 1 - share])
    return Estimate(value, float(low), float(high), n)
