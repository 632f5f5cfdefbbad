"""A2, A3 and the input half of A5: was the whole file sent, once, in order and not too early?"""

from __future__ import annotations

from typing import Any

from hfd.judge.findings import TRACE, Finding
from hfd.judge.trace import OUTPUTS, Trace
from hfd.media_time import SAMPLE_RATE, VIDEO_FRAME_SAMPLES

EARLY_S = 0.001
"""Times are written in microseconds; nothing may be earlier than it can be by more than 1 ms."""


def check_input(trace: Trace) -> list[Finding]:
    """A2: every unit of the file, contiguous, zero-filled only in the last, and nothing more."""
    header = trace.header
    unit, total = header["unit_samples"], header["media_samples"]
    inputs = trace.of("input")
    findings: list[Finding] = []
    expected = -(-total // unit)
    for index, (number, line) in enumerate(inputs):
        wanted = {
            "unit": index,
            "start": index * unit,
            "samples": unit,
            "valid_samples": max(0, min(unit, total - index * unit)),
        }
        if index >= expected:
            extra = len(inputs) - expected
            findings.append(
                Finding(
                    "A2",
                    TRACE,
                    f"input after the file's end: {extra} more units "
                    f"({extra * unit / SAMPLE_RATE:.2f} s)",
                    number,
                )
            )
            break
        wrong = next((key for key in wanted if line[key] != wanted[key]), None)
        if wrong:
            findings.append(
                Finding("A2", TRACE, f"{wrong} is {line[wrong]}, expected {wanted[wrong]}", number)
            )
            break
        due = (line["start"] + line["samples"]) / SAMPLE_RATE
        if abs(line["due"] - due) > EARLY_S:
            findings.append(
                Finding("A3", TRACE, f"due is {line['due']} s, the unit ends at {due} s", number)
            )
    if len(inputs) < expected:
        last = inputs[-1][0] if inputs else 1
        findings.append(
            Finding("A2", TRACE, f"only {len(inputs)} of {expected} units were sent", last)
        )
    findings += _check_frames(header, inputs)
    return findings + _check_done(trace)


def _check_frames(
    header: dict[str, Any], inputs: list[tuple[int, dict[str, Any]]]
) -> list[Finding]:
    """Every 5 fps video frame exactly once, in the unit in which it lies."""
    if header["media_samples"] != header["media_frames"] * VIDEO_FRAME_SAMPLES:
        return [Finding("A2", TRACE, "the header's pictures and samples differ in length", 1)]
    unit, total = header["unit_samples"], header["media_frames"]
    for number, line in inputs:
        first = -(-line["start"] // VIDEO_FRAME_SAMPLES)
        end = min(total, -(-(line["start"] + unit) // VIDEO_FRAME_SAMPLES))
        if line["frames"] != list(range(first, end)):
            wanted = f"{first} to {end - 1}" if end > first else "none"
            return [
                Finding(
                    "A2",
                    TRACE,
                    f"pictures {line['frames']} in this unit, expected {wanted}",
                    number,
                )
            ]
    return []


def _check_done(trace: Trace) -> list[Finding]:
    done = [number for number, _ in trace.of("input_done")]
    if len(done) != 1:
        return [Finding("A2", TRACE, f"input_done appears {len(done)} times", len(trace.lines))]
    late = [number for number, _ in trace.of("input") if number > done[0]]
    if late:
        return [Finding("A2", TRACE, "input after input_done", late[0])]
    return []


def check_pacing(trace: Trace) -> list[Finding]:
    """A3: no unit is sent before its last sample exists."""
    for number, line in trace.of("input"):
        early = line["due"] - line["t"]
        if early > EARLY_S:
            return [
                Finding(
                    "A3",
                    TRACE,
                    f"unit {line['unit']} was sent {1000 * early:.0f} ms before its last sample "
                    "exists",
                    number,
                )
            ]
    return []


def check_dependency(trace: Trace) -> list[Finding]:
    """A5: no output is earlier than the input it depends on, or names input not yet sent."""
    sent: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(trace.lines, 1):
        kind = line["kind"]
        if kind == "input":
            sent[line["unit"]] = line
        if kind not in OUTPUTS:
            continue
        source = sent.get(line["input_seq"])
        if source is None:
            if line["input_seq"] < 0 and kind in ("control", "metric", "heard"):
                continue  # what a model reports while it opens depends on no input
            return [
                Finding(
                    "A5",
                    TRACE,
                    f"{kind} depends on unit {line['input_seq']}, which has not been sent",
                    number,
                )
            ]
        early = max(source["due"], source["t"]) - line["t"]
        if early > EARLY_S:
            return [
                Finding(
                    "A5",
                    TRACE,
                    f"{kind} at {line['t']:.3f} s is {early:.3f} s earlier than unit "
                    f"{line['input_seq']}, on which it depends",
                    number,
                )
            ]
    return []
