"""How a sample can end, by name, and small statistics for the record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hfd.errors import HfdError

FAILURES = (
    "aero_connect_failed",
    "aero_socket_lost",
    "aero_error",
    "aero_protocol",
    "not_online",
    "tts_connect_failed",
    "tts_socket_lost",
    "tts_error",
    "tts_protocol",
    "tts_stalled",
    "server_died",
)


class SampleFailure(HfdError):
    """A sample that ended in a way that makes no result; `end_reason` is one of `FAILURES`."""

    def __init__(self, end_reason: str, problem: str, remedy: str | None = None) -> None:
        assert end_reason in FAILURES
        self.end_reason = end_reason
        super().__init__(f"{end_reason}: {problem}", remedy=remedy)


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
