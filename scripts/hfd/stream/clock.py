"""The two clocks on which a run's times are measured. Both count media seconds.

``arrival``: units are sent in real time, and an event's time is when it arrived.
``virtual``: for models that compute inside `push`: the time is the later of "the input existed"
and "the model was free", plus the compute that was measured. It tells the times of a real-time
run on the same machine without waiting for silence to pass.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod


class RunClock(ABC):
    """Media time during one sample; `begin` and `end` enclose each step of the model."""

    name: str

    @abstractmethod
    def begin(self, due: float) -> float:
        """Wait until, or go to, the moment `due` (media seconds); return the time that it is."""

    @abstractmethod
    def now(self) -> float:
        """Media time of this moment."""

    def end(self) -> None:
        """The step is over."""

    def forgive(self, seconds: float) -> None:
        """Take out time that the workflow itself spent inside a step (writing the trace)."""


class VirtualClock(RunClock):
    """``v = max(v, due)`` when a step begins; then `v` runs with the measured compute."""

    name = "virtual"

    def __init__(self) -> None:
        self._lock = threading.RLock()  # other threads may read the time while a step ends
        self._v = 0.0
        self._mark: float | None = None

    def begin(self, due: float) -> float:
        with self._lock:
            self._v = max(self._v, due)
            self._mark = time.perf_counter()
            return self._v

    def now(self) -> float:
        with self._lock:
            if self._mark is None:
                return self._v
            return self._v + time.perf_counter() - self._mark

    def end(self) -> None:
        with self._lock:
            self._v = self.now()
            self._mark = None

    def forgive(self, seconds: float) -> None:
        with self._lock:
            if self._mark is not None:
                self._mark += seconds


class ArrivalClock(RunClock):
    """Real time since media time 0 was due; deadlines are absolute, so lag never adds up."""

    name = "arrival"

    def __init__(self) -> None:
        self._zero = time.monotonic()

    def begin(self, due: float) -> float:
        while (left := due - self.now()) > 0:
            time.sleep(left)
        return self.now()

    def now(self) -> float:
        return time.monotonic() - self._zero


def make_clock(name: str) -> RunClock:
    """The clock of a model's capabilities; its media time 0 is now."""
    return {"virtual": VirtualClock, "arrival": ArrivalClock}[name]()
