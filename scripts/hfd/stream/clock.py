"""The two clocks on which a run's times are measured. Both count media seconds.

``arrival``: units are sent in real time, and an event's time is when it arrived.
``virtual``: for models that compute inside `push`: the time is the later of "the input existed"
and "the model was free", plus the compute that was measured. It tells the times of a real-time
run on the same machine without waiting for silence to pass.

Every time is made of one reading of the machine's monotonic clock, and what a clock leaves out is
counted: a trace's times can be computed again from its own lines (docs/formats.md).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import NamedTuple


class Moment(NamedTuple):
    """One moment on the run's clock and on the machine's, from one reading.

    Attributes:
        t: media seconds, in whole microseconds.
        mono_ns: the machine's monotonic clock.
        own_ns: nanoseconds since the clock began that are the workflow's own and so not in `t`.
    """

    t: float
    mono_ns: int
    own_ns: int = 0


class RunClock(ABC):
    """Media time during one sample; `begin` and `end` enclose each step of the model."""

    name: str

    @abstractmethod
    def begin(self, due: float) -> float:
        """Wait until, or go to, the moment `due` (media seconds); return the time that it is."""

    @abstractmethod
    def read(self) -> Moment:
        """This moment."""

    def now(self) -> float:
        """Media time of this moment."""
        return self.read().t

    def end(self) -> None:
        """The step is over."""

    def forgive(self, nanoseconds: int) -> None:
        """Take out time that the workflow itself spent inside a step (writing the trace)."""


class VirtualClock(RunClock):
    """``v = max(v, due)`` when a step begins; then `v` runs with the measured compute."""

    name = "virtual"

    def __init__(self) -> None:
        self._lock = threading.RLock()  # other threads may read the time while a step ends
        self._v_ns = 0
        self._own_ns = 0
        self._mark = time.monotonic_ns()
        self._running = False

    def begin(self, due: float) -> float:
        with self._lock:
            at = time.monotonic_ns()
            if not self._running:
                self._own_ns += at - self._mark
            self._v_ns, self._mark, self._running = max(self._v_ns, round(due * 1e9)), at, True
            return self._v_ns / 1e9

    def read(self) -> Moment:
        with self._lock:
            at = time.monotonic_ns()
            passed = at - self._mark
            if self._running:
                return Moment(_seconds(self._v_ns + passed), at, self._own_ns)
            return Moment(_seconds(self._v_ns), at, self._own_ns + passed)

    def end(self) -> None:
        with self._lock:
            at = time.monotonic_ns()
            self._v_ns += at - self._mark
            self._mark, self._running = at, False

    def forgive(self, nanoseconds: int) -> None:
        with self._lock:
            if self._running:
                self._mark += nanoseconds
                self._own_ns += nanoseconds


class ArrivalClock(RunClock):
    """Real time since media time 0 was due; deadlines are absolute, so lag never adds up."""

    name = "arrival"

    def __init__(self) -> None:
        self._zero = time.monotonic_ns()

    def begin(self, due: float) -> float:
        while (left := due - self.now()) > 0:
            time.sleep(left)
        return self.now()

    def read(self) -> Moment:
        at = time.monotonic_ns()
        return Moment(_seconds(at - self._zero), at)


def _seconds(nanoseconds: int) -> float:
    """Whole microseconds, as seconds."""
    return round(nanoseconds / 1e9, 6)


def make_clock(name: str) -> RunClock:
    """The clock of a model's capabilities; its media time 0 is now."""
    return {"virtual": VirtualClock, "arrival": ArrivalClock}[name]()
