"""The tables of docs/performance.md from the numbers of roma_steps.py."""

from __future__ import annotations

from typing import Any

STEPS = ("think unit", "think token", "talker reads unit", "code", "listening second")
KINDS = ("eager", "graphs")
ANY_CONTEXT = ("shrink and patchify", "see", "hear")


def tables(numbers: dict[str, Any]) -> str:
    """Markdown: milliseconds per step, then speech, memory and warm-up, both paths beside it.

    Then the samples that went through the worker, if any did.
    """
    return "\n".join(
        [*step_rows(numbers), "", *speech_rows(numbers), "", *worker_rows(numbers), ""]
    )


def step_rows(numbers: dict[str, Any]) -> list[str]:
    floors = numbers["floor_ms"]
    rows = ["| step | context | plain | graphs | floor |", "|---|---|---|---|---|"]
    known = contexts(numbers)
    shared = [seconds for seconds in known if f"eager steps_ms {seconds}" in numbers]
    for step in ANY_CONTEXT:
        values = both(numbers, f"steps_ms {shared[-1]}", step)
        rows.append(row(step, "–", *values, floors.get(step)))
    for step in STEPS:
        for seconds in known:
            values = both(numbers, f"steps_ms {seconds}", step)
            rows.append(row(step, f"{seconds} s", *values, floors.get(step)))
    for step in numbers["graphs vocoder_ms"]:
        floor = floors[step.split(",")[0]]
        rows.append(row(step, "–", *both(numbers, "vocoder_ms", step), floor))
    return rows


def speech_rows(numbers: dict[str, Any]) -> list[str]:
    rows = ["| what | context | plain | graphs |", "|---|---|---|---|"]
    for seconds in contexts(numbers):
        for what in ("spoken_second_s", "first_audio_s"):
            values = both(numbers, f"speech {seconds}", what)
            rows.append(row(what, f"{seconds} s", *values, digits=3))
        for what in ("allocated_gb", "peak_reserved_gb"):
            rows.append(row(what, f"{seconds} s", *both(numbers, f"memory {seconds}", what)))
    for what in ("first_sound_s", "warm_up_s"):
        rows.append(row(what, "–", *(numbers.get(f"{k} {what}") for k in KINDS), digits=3))
    return rows


def worker_rows(numbers: dict[str, Any]) -> list[str]:
    rows = ["| sample | media, s | spoken, s | compute per media second, s |", "|---|---|---|---|"]
    for name, speed in numbers.get("worker", {}).get("samples", {}).items():
        media, spoken = f"{speed['media_s']:.1f}", f"{speed['spoken_s']:.1f}"
        rows.append(row(name, f"{media} | {spoken}", speed["compute_per_media_s"], digits=3))
    return rows if len(rows) > 2 else []


def contexts(numbers: dict[str, Any]) -> list[int]:
    """Seconds of context that were measured."""
    return [int(name.split()[-1]) for name in numbers if name.startswith("graphs steps_ms")]


def both(numbers: dict[str, Any], name: str, step: str) -> list[float | None]:
    """A value of the plain and of the accelerated path; None where it was not measured."""
    return [numbers.get(f"{kind} {name}", {}).get(step) for kind in KINDS]


def row(what: str, context: str, *values: float | None, digits: int = 1) -> str:
    shown = ["" if value is None else f"{value:.{digits}f}" for value in values]
    return f"| {' | '.join([what, context, *shown])} |"
