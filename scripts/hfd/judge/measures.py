"""What a trace alone says of a run's real time: lags, cost of units, waiting sound, latencies.

Every number has its boundary: from which event to which, on which clock (docs/card.md).
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from hfd.judge.clock_check import counted_s, is_exact
from hfd.judge.trace import Trace

MOST_UNITS = 600
"""Costs of at most this many units of a sample are kept, evenly chosen."""


def trace_measures(trace: Trace, q1: float | None) -> dict[str, Any]:
    """The measures of one sample, seconds unless the key says otherwise.

    Args:
        trace: whole and readable.
        q1: end of the question in media seconds, or None.
    """
    inputs = [line for _, line in trace.of("input")]
    audio = [line for _, line in trace.of("audio")]
    rate = trace.header["output_rate"]
    media_s = trace.header["media_samples"] / 16_000
    costs = unit_costs(trace)
    return {
        "lag_s": _packed([line["t"] - line["due"] for line in inputs][-MOST_UNITS:]),
        "listening_s": _packed([cost for _, cost, spoke in costs if not spoke]),
        "growth": growth(costs),
        "buffer_s": _packed([line["play_at"] / rate - line["t"] for line in audio]),
        "chunk_s": _packed([line["samples"] / rate for line in audio]),
        "frames_per_s": _frames_taken(inputs) / media_s,
        "unit_to_text_s": _since_input(trace, "text", "due", q1),
        "unit_to_audio_s": _since_input(trace, "audio", "t", q1),
        "media_s": media_s,
        "context_tokens": _last_context(trace),
        "rtt_ms": _ending(trace).get("rtt_ms"),
    }


def _packed(seconds: Sequence[float]) -> array[float]:
    """Seconds to the microsecond, eight bytes each: an audit holds thousands of samples'."""
    return array("d", [round(value, 6) for value in seconds])


def unit_costs(trace: Trace) -> list[tuple[float, float, bool]]:
    """For each unit of a virtual run: media seconds before it, compute, whether it gave output.

    The compute of a unit is what the run's clock counted from its ``input`` line to the next
    step's. Empty on the arrival clock, where a server's compute cannot be seen.
    """
    if trace.header["clock"] != "virtual" or not is_exact(trace):
        return []
    steps = [(at, line) for at, line in trace.of("input", "input_done")]
    costs = []
    for (at, line), (after, following) in itertools.pairwise(steps):
        between = trace.lines[at : after - 1]
        spoke = any(other["kind"] in ("text", "audio") for other in between)
        cost = max(counted_s(line, following), 0.0)
        costs.append((round(line["start"] / 16_000, 4), round(cost, 6), spoke))
    step = max(1, math.ceil(len(costs) / MOST_UNITS))
    return costs[::step]


def growth(costs: Sequence[tuple[float, float, bool]]) -> float | None:
    """How a unit's compute grows with what came before: the slope of log cost over log time.

    0: flat. 1: proportional to the whole past, as when everything is computed anew. Only units
    without output count, since speech costs what it costs. None where the file is too short or
    the units too quick to tell.
    """
    listening = [(t, cost) for t, cost, spoke in costs if not spoke and t > 0 and cost > 1e-4]
    if len(listening) < 6:
        return None
    times, values = (np.log(np.array(column)) for column in zip(*listening, strict=True))
    if times.max() - times.min() < math.log(3):  # the past has not even tripled
        return None
    # Medians of thirds of the range: one slow unit says nothing about growth.
    edges = np.linspace(times.min(), times.max(), 4)
    parts = [
        (np.median(times[inside]), np.median(values[inside]))
        for low, high in itertools.pairwise(edges)
        if (inside := (times >= low) & (times <= high)).any()
    ]
    x, y = (np.array(column) for column in zip(*parts, strict=True))
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else None


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """P50, P95, max and n; None without values."""
    if not len(values):
        return None
    p50, p95 = np.percentile(values, [50, 95])
    most = float(np.max(values))
    return {"p50": float(p50), "p95": float(p95), "max": most, "n": len(values)}


def _frames_taken(inputs: Sequence[dict[str, Any]]) -> int:
    return sum(len(line.get("taken", line["frames"])) for line in inputs)


def _since_input(trace: Trace, kind: str, since: str, q1: float | None) -> float | None:
    """From the unit it depends on to the first output of a kind after the question.

    Args:
        since: ``due``, when the unit's last sample existed, or ``t``, when it was given over.
    """
    units = {line["unit"]: line for _, line in trace.of("input")}
    lines = [line for _, line in trace.of(kind) if q1 is None or line["t"] >= q1]
    first = next((line for line in lines if line["input_seq"] in units), None)
    if first is None:
        return None
    return round(first["t"] - units[first["input_seq"]][since], 6)


def _last_context(trace: Trace) -> int | None:
    told = [
        line["values"]["context_tokens"]
        for _, line in trace.of("metric")
        if isinstance(line["values"].get("context_tokens"), int)
    ]
    return told[-1] if told else None


def _ending(trace: Trace) -> dict[str, Any]:
    return next((line for _, line in trace.of("end")), {})
