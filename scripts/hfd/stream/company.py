"""How many samples ran beside a sample: times of a shared card are not the model's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Company:
    """Counts the samples that one worker has in flight; may be used from any thread.

    Args:
        sessions: how many there may be.
        now: the clock, in seconds.
    """

    def __init__(self, sessions: int, now: Callable[[], float] = time.monotonic) -> None:
        self.sessions = sessions
        self._now = now
        self._lock = threading.Lock()
        self._stays: set[Stay] = set()
        self._sample_s = 0.0
        self._at = now()

    @contextmanager
    def joined(self) -> Iterator[Stay]:
        """A sample's time in flight; the `Stay` is complete when it is over."""
        stay = Stay()
        with self._lock:
            stay.began, stay.sample_s = self._count()
            self._stays.add(stay)
            for other in self._stays:
                other.most_beside = max(other.most_beside, len(self._stays) - 1)
        try:
            yield stay
        finally:
            with self._lock:
                ended, sample_s = self._count()
                self._stays.discard(stay)
                lasted = max(ended - stay.began, 1e-9)
                stay.mean_beside = (sample_s - stay.sample_s) / lasted - 1

    def _count(self) -> tuple[float, float]:
        """Now, and the seconds that samples have spent in flight by now, all together."""
        now = self._now()
        self._sample_s += len(self._stays) * (now - self._at)
        self._at = now
        return now, self._sample_s


class Stay:
    """One sample's time in flight.

    Attributes:
        most_beside: most other samples at one moment.
        mean_beside: other samples, on average over the time.
    """

    def __init__(self) -> None:
        self.began = self.sample_s = 0.0
        self.most_beside = 0
        self.mean_beside = 0.0

    def record(self, sessions: int) -> dict[str, Any]:
        """What provenance.json keeps as ``shared``."""
        return {
            "sessions": sessions,
            "most_beside": self.most_beside,
            "mean_beside": round(max(self.mean_beside, 0.0), 3),
        }
