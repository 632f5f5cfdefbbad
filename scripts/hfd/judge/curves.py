"""Two curves of a run that the report draws: how late input was sent, and how the context grew."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

import numpy as np

from hfd.judge.trace import Trace

LAG_EDGES_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Bins of the histogram: below the first edge, between two edges, from the last edge on."""


def lag_counts(trace: Trace) -> list[int]:
    """Units by how long after their last sample they were sent, one count for each bin.

    On the arrival clock that is the sender's lag, on the virtual one the wait for a busy model.
    """
    lags = [1000 * (line["t"] - line["due"]) for _, line in trace.of("input")]
    bins = np.searchsorted(LAG_EDGES_MS, lags, side="right")
    return np.bincount(bins, minlength=len(LAG_EDGES_MS) + 1).tolist()


def context_curve(trace: Trace) -> list[tuple[float, int]]:
    """The context that the model reports: (seconds on the run's clock, tokens) at each change.

    Empty where the trace holds no ``context_tokens``.
    """
    told = [
        (round(line["t"], 3), line["values"]["context_tokens"])
        for _, line in trace.of("metric")
        if isinstance(line["values"].get("context_tokens"), int)
    ]
    return [next(group) for _, group in itertools.groupby(told, key=lambda point: point[1])]


def by_second(curve: Sequence[tuple[float, int]]) -> list[int]:
    """The context at each whole second, from 0 until the curve has ended."""
    if not curve:
        return []
    times, tokens = zip(*curve, strict=True)
    seconds = range(int(times[-1]) + 2)
    return [([0, *tokens])[bisect.bisect_right(times, second)] for second in seconds]


def spread(curves: Sequence[Sequence[int]]) -> dict[str, list[float]]:
    """Least, middle and most context of a model's samples at each second.

    A sample that has ended counts with its last value, so that no curve falls for its end.
    """
    rows = [
        [curve[min(second, len(curve) - 1)] for curve in curves]
        for second in range(max(map(len, curves), default=0))
    ]
    return {
        name: [float(of(row)) for row in rows]
        for name, of in (("least", min), ("median", np.median), ("most", max))
    }
