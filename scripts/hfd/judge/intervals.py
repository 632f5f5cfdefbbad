"""Arithmetic on intervals of media time, in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Interval:
    """Media time ``[start, end)``."""

    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


def merged(intervals: Iterable[Interval], gap: float = 0.0) -> list[Interval]:
    """Sorted intervals, joined where less than `gap` seconds lie between them."""
    out: list[Interval] = []
    for part in sorted(intervals):
        if out and part.start - out[-1].end <= gap:
            out[-1] = Interval(out[-1].start, max(out[-1].end, part.end))
        else:
            out.append(part)
    return out


def overlap(first: Iterable[Interval], second: Iterable[Interval]) -> float:
    """Seconds that lie in both sets."""
    second = merged(second)
    return sum(
        max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in merged(first) for b in second
    )
