"""Small statistics of times, for the record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def percentiles(values: Sequence[float]) -> dict[str, float] | None:
    """p50, p95 and maximum, or None without values."""
    if not values:
        return None
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": round(p50, 3), "p95": round(p95, 3), "max": round(max(values), 3)}


def largest_burst(times: Sequence[float], window_s: float) -> int:
    """Most events within any `window_s`; more than a few say that the server lagged or batched."""
    first = best = 0
    for last, time in enumerate(times):
        while time - times[first] >= window_s:
            first += 1
        best = max(best, last - first + 1)
    return best
