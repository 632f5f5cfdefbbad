"""A4, the clock: are a trace's times those that its own readings of the machine's clock give?

Every line holds both clocks, read together (`t`, `mono_ns`), and what the workflow itself took and
the run's clock left out (`own_ns`). So each time can be computed again from the line before it.
"""

from __future__ import annotations

from typing import Any

from hfd.judge.findings import TRACE, Finding
from hfd.judge.trace import Trace

EXACT_S = 1e-5
"""Times are written in microseconds."""
ARRIVAL_S = 0.02
"""Older traces read the two clocks one after the other."""
MOST_OWN_EVENT_S = 0.05
MOST_OWN_IN_STEPS_S = 0.6
"""The recorder takes at most 20 ms for one event and 0.5 s for a sample out of a step; the rest of
a slow disk's time counts as compute."""
STEP = ("input", "input_done")


def check_times(trace: Trace) -> list[Finding]:
    """One clock, never backwards, and each time what the lines before it allow."""
    before = None
    for number, line in enumerate(trace.lines, 1):
        if line["t"] < 0:
            return [_wrong(f"time {line['t']} s lies before the session", number)]
        if before and line["mono_ns"] < before["mono_ns"]:
            return [_wrong("the monotonic clock runs backwards", number)]
        if before and line["t"] < before["t"] - EXACT_S:
            return [_wrong(f"time runs backwards, {before['t']} to {line['t']} s", number)]
        before = line
    clock = trace.header["clock"]
    if clock not in ("virtual", "arrival"):
        return [_wrong(f"unknown clock {clock!r}", 1)]
    if clock == "arrival":
        return _check_arrival(trace)
    return _check_virtual(trace) if is_exact(trace) else []


def is_exact(trace: Trace) -> bool:
    """Whether every line says what the clock left out, so that times can be computed again."""
    return all("own_ns" in line for line in trace.lines[1:])


def counted_s(before: dict[str, Any], line: dict[str, Any]) -> float:
    """Seconds between two lines for which the run's clock ran."""
    passed = line["mono_ns"] - before["mono_ns"]
    return (passed - (line["own_ns"] - before["own_ns"])) / 1e9


def compute_s(trace: Trace) -> float | None:
    """Seconds of compute of a virtual run, from its first unit to its end."""
    inputs = trace.of("input")
    if not inputs or not is_exact(trace):
        return None
    return counted_s(inputs[0][1], trace.lines[-1])


def own_s(trace: Trace) -> float:
    """Seconds of a virtual run that are the workflow's own: decoding, hashing, writing."""
    inputs = trace.of("input")
    return (trace.lines[-1]["own_ns"] - inputs[0][1]["own_ns"]) / 1e9 if inputs else 0.0


def _check_virtual(trace: Trace) -> list[Finding]:
    inputs = trace.of("input")
    if not inputs:
        return []
    media_s = trace.header["media_samples"] / 16_000
    first = inputs[0][0]
    in_steps = 0.0
    before = inputs[0][1]
    for number, line in enumerate(trace.lines[first:], first + 1):
        counted = counted_s(before, line)
        own = (line["own_ns"] - before["own_ns"]) / 1e9
        expected = before["t"] + counted
        if own < 0 or counted < -EXACT_S:
            return [_wrong("own_ns does not fit the monotonic clock", number)]
        latest = expected
        if line["kind"] in STEP:
            due = line["due"] if line["kind"] == "input" else media_s
            latest = max(expected, due + counted)
        elif line["kind"] != "end":
            in_steps += own
            if own > MOST_OWN_EVENT_S or in_steps > MOST_OWN_IN_STEPS_S:
                message = (
                    f"{1000 * own:.0f} ms are left out inside a step ({in_steps:.2f} s in all)"
                )
                return [_wrong(message, number)]
        if not expected - EXACT_S <= line["t"] <= latest + EXACT_S:
            off = line["t"] - (expected if line["t"] < expected else latest)
            message = (
                f"t is {1000 * off:+.1f} ms off what the machine's clock and the line before allow"
            )
            return [_wrong(message, number)]
        before = line
    return []


def _check_arrival(trace: Trace) -> list[Finding]:
    """From the first unit on, t and the monotonic clock differ by one constant."""
    inputs = trace.of("input")
    if not inputs:
        return []
    first_number, first = inputs[0]
    zero = first["mono_ns"] / 1e9 - first["t"]
    for number, line in enumerate(trace.lines, 1):
        off = line["mono_ns"] / 1e9 - zero - line["t"]
        if number >= first_number and abs(off) > ARRIVAL_S:
            return [_wrong(f"t is {off:+.3f} s off the machine's monotonic clock", number)]
    return []


def _wrong(message: str, line: int) -> Finding:
    return Finding("A4", TRACE, message, line)
