"""Slices that leave too late fail the sample (arrival clock)."""

from __future__ import annotations

from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.measures import percentiles


class Deadlines:
    """When each slice was due and when it left; the limit between the two (arrival clock).

    A slice leaves when its request has been written to the thinker's socket, which waits for the
    answer to the slice before it: so a thinker that is slower than real time shows here.

    Attributes:
        zero: monotonic time of media time 0, as the promptest slice shows it.
    """

    def __init__(self, max_lag_s: float) -> None:
        self.zero = 0.0
        self._max_lag_s = max_lag_s
        self._due: list[float] = []  # media seconds, by slice
        self._lags_ms: list[float] = []

    def is_due(self, unit: Unit, now: float) -> None:
        """A slice is handed over at the moment it is due.

        Raises:
            SampleFailure: ``not_online``, an earlier one has still not left.
        """
        self.zero = min(self.zero, now - unit.t1) if self._due else now - unit.t1
        self._due.append(unit.t1)
        self._check(len(self._lags_ms), now)

    def left(self, index: int, moment: float) -> None:
        """A slice has left (again, if it was tried again).

        Raises:
            SampleFailure: ``not_online``.
        """
        self._lags_ms[index:] = [1000 * self._check(index, moment)]

    def lag_ms(self, index: int) -> float:
        """How late a slice left, in milliseconds.

        Raises:
            HfdError: it has not left in whole, though it was answered.
        """
        if index >= len(self._lags_ms):
            raise HfdError("the thinker answered before it had read the whole request")
        return round(self._lags_ms[index], 3)

    def lags(self) -> dict[str, float] | None:
        """Percentiles of all lags in milliseconds."""
        return percentiles(self._lags_ms)

    def _check(self, index: int, now: float) -> float:
        lag_s = now - (self.zero + self._due[index])
        if lag_s > self._max_lag_s:
            raise SampleFailure(
                "not_online",
                f"slice {index} left {lag_s:.3f} s after it was due"
                f" (limit {self._max_lag_s:g} s): the thinker had not answered the one before",
                remedy="Give the thinker more GPUs; or clock: virtual, which measures compute",
            )
        return lag_s
