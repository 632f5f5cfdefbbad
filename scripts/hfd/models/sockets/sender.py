"""Units on their way out: each leaves when it is due, or the sample is not online."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hfd.duplex.units import Unit
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.measures import percentiles

Messages = Sequence[str | bytes]


class UnitSender:
    """Sends what each unit becomes, in order, and measures when it left.

    The session hands a unit over when it is due (absolute deadlines, so lag never adds up); it
    counts as sent when its last message has left the process, and that moment is judged.

    Args:
        link: where they go.
        exchange: the sample.
        encode: the messages of a unit; may compute beside the loop.
        ending: the messages after the last unit.
        media_s: length of the file in seconds.
        max_lag_s: a unit that leaves later than this after its deadline fails the sample.
        drain_max_s: seconds after the file's end in which everything must be over.
        in_real_time: False for a server whose time is our input: its units are due when they are
            handed over, and the file's length limits nothing.

    Attributes:
        begun: units of which at least a part may have reached the server: what an answer can
            depend on.
        sent: units that have left in whole.
        ended: monotonic time at which the file was over, or None.
    """

    def __init__(
        self,
        link: Link,
        exchange: Exchange,
        encode: Callable[[Unit], Awaitable[Messages]],
        ending: Callable[[], Messages],
        *,
        media_s: float,
        max_lag_s: float,
        drain_max_s: float,
        in_real_time: bool = True,
    ) -> None:
        self.begun = 0
        self.sent = 0
        self.ended: float | None = None
        self._link = link
        self._exchange = exchange
        self._encode = encode
        self._ending = ending
        self._media_s = media_s
        self._max_lag_s = max_lag_s
        self._drain_max_s = drain_max_s
        self._in_real_time = in_real_time
        self._loop = asyncio.get_running_loop()
        self._units: asyncio.Queue[tuple[Unit, float] | None] = asyncio.Queue()
        self._zero: float | None = None
        self._lags_ms: list[float] = []

    def push(self, unit: Unit) -> None:
        """Hand over a unit that is due now; returns at once, from any thread."""
        self._loop.call_soon_threadsafe(self._units.put_nowait, (unit, time.monotonic()))

    def end(self) -> None:
        """The file is over; from any thread."""
        self._loop.call_soon_threadsafe(self._units.put_nowait, None)

    async def run(self) -> None:
        """Send until the file is over.

        Raises:
            SampleFailure: ``not_online``, or what the link raises.
        """
        while (item := await self._units.get()) is not None:
            await self._send(*item)
        self.ended = time.monotonic()
        self._exchange.end_by(
            self.ended + self._drain_max_s, f"{self._drain_max_s:g} s after the end"
        )
        for message in self._ending():
            await self._link.send(message)

    def facts(self) -> dict[str, Any]:
        """How far behind its deadline each unit left, in milliseconds."""
        return {"wire_lag_ms": percentiles(self._lags_ms)}

    async def _send(self, unit: Unit, handed_over: float) -> None:
        due = self._due(unit, handed_over)
        try:
            async with asyncio.timeout_at(due + self._max_lag_s):
                messages = await self._encode(unit)
                self.begun = unit.index + 1
                for message in messages:
                    await self._link.send(message)
        except TimeoutError:
            raise SampleFailure(
                "not_online",
                f"unit {unit.index} had not left {self._max_lag_s:g} s after its deadline",
                remedy="The server does not read in real time, or the machine is too busy",
            ) from None
        self.sent = unit.index + 1
        self._lags_ms.append((time.monotonic() - due) * 1000)

    def _due(self, unit: Unit, handed_over: float) -> float:
        """When the unit was due: the session's clock, as the promptest of its units shows it."""
        if not self._in_real_time:
            return handed_over
        if self._zero is None:
            self._zero = handed_over - unit.t1
            limit = f"{self._media_s:g} s of media and {self._drain_max_s:g} s"
            self._exchange.end_by(self._zero + self._media_s + self._drain_max_s, limit)
        self._zero = min(self._zero, handed_over - unit.t1)
        return self._zero + unit.t1
