"""One sample with the Aero server: units go out, text comes back and goes on to the speaker.

Sender, reader and the speaker's two tasks share one event loop and never wait for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from fractions import Fraction
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from hfd.duplex.events import Text
from hfd.duplex.model import Emit
from hfd.duplex.units import Unit
from hfd.media_time import FPS
from hfd.models.aero.ending import SampleFailure, largest_burst, percentiles
from hfd.models.aero.pictures import is_taken, jpeg
from hfd.models.aero.recording import Recording
from hfd.models.aero.settings import Limits
from hfd.models.aero.speaker import MAX_FRAME_BYTES, PING_S, Speaker
from hfd.models.aero.vocab import TokenText
from hfd.models.aero.wire import Picture, Wire, WireEvent

SLOT_S = 0.08
AFTER_FINAL_S = 0.1
"""How long to listen on after the final event, for a duplicate or a straggler."""
REPLACEMENT = "\ufffd"


class Conversation:
    """One open sample. All methods but `push` run in the event loop's thread."""

    def __init__(
        self,
        wire: Wire,
        limits: Limits,
        picture_fps: Fraction,
        token_text: TokenText | None,
        emit: Emit,
        recording: Recording,
    ) -> None:
        self.failure: BaseException | None = None
        self._wire = wire
        self._limits = limits
        self._picture_fps = picture_fps
        self._token_text = token_text
        self._emit = emit
        self._recording = recording
        self._loop = asyncio.get_running_loop()
        self._speaker = Speaker(emit, self._fail, recording)
        self._failed = asyncio.Event()
        self._activity = asyncio.Event()
        self._units: asyncio.Queue[tuple[Unit, float] | None] = asyncio.Queue()
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._gap: asyncio.TimerHandle | None = None
        self._sent = 0
        self._pictures = 0
        self._done_at: float | None = None
        self._final = False
        self._closed = False
        self._counts: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._text_times: list[float] = []
        self._wire_lags_ms: list[float] = []

    async def open(self, aero_url: str, tts_url: str, tts_config: dict[str, Any]) -> None:
        """Connect to both servers and start reading.

        Raises:
            SampleFailure: a server cannot be reached or refuses the session.
        """
        await self._speaker.open(tts_url, tts_config, self._limits.connect_s)
        try:
            async with asyncio.timeout(self._limits.connect_s):
                self._socket = await connect(
                    aero_url, max_size=MAX_FRAME_BYTES, compression=None, proxy=None, **PING_S
                )
            for message in self._wire.open_messages():
                await self._send(message)
        except (OSError, TimeoutError, ConnectionClosed) as error:
            raise SampleFailure(
                "aero_connect_failed", f"no Aero session ({type(error).__name__}: {error})"
            ) from error
        self._reader = asyncio.create_task(self._read())
        self._sender = asyncio.create_task(self._send_units())
        self._tasks = [self._reader, self._sender]

    def push(self, unit: Unit) -> None:
        """Hand over a unit; returns at once, from any thread."""
        self._loop.call_soon_threadsafe(self._units.put_nowait, (unit, time.monotonic()))

    async def finish(self) -> dict[str, Any]:
        """Say that the file is over, let the answer and its speech end; return what happened.

        Raises:
            SampleFailure: see `ending.FAILURES`.
        """
        self._units.put_nowait(None)
        end_reason = await self._unless_failed(self._end_of_text())
        if self._gap is not None:
            self._gap.cancel()
        self._speaker.flush()
        if self._token_text is not None and self._token_text.pending:
            self._counts["lossy_deltas"] += 1  # its other half never came
        await self._unless_failed(self._speaker.finish(self._limits.speech_idle_s))
        return {"end_reason": end_reason, "truncated": self._truncated(), **self._facts()}

    async def close(self) -> None:
        """Drop both sessions."""
        if self._gap is not None:
            self._gap.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._speaker.close()
        if self._socket is not None:
            await self._socket.close()
        self._recording.close()

    # -- out ---------------------------------------------------------------------------------

    async def _send(self, message: str | bytes) -> None:
        await self._socket.send(message)
        self._recording.add("aero", "out", message)

    async def _send_units(self) -> None:
        try:
            while (item := await self._units.get()) is not None:
                unit, handed_over = item
                for message in self._wire.unit_messages(unit, await self._picture(unit)):
                    await self._send(message)
                self._sent = unit.index + 1
                self._wire_lags_ms.append((time.monotonic() - handed_over) * 1000)
            self._done_at = time.monotonic()
            for message in self._wire.done_messages():
                await self._send(message)
        except ConnectionClosed as error:
            self._fail(
                SampleFailure("aero_socket_lost", f"while sending unit {self._sent}: {error}")
            )
        except Exception as error:
            self._fail(error)

    async def _picture(self, unit: Unit) -> Picture | None:
        """The unit's picture, if its turn has come; made into a JPEG beside the loop."""
        taken = [frame for frame in unit.frames if is_taken(frame.index, self._picture_fps)]
        if not taken:
            return None
        self._pictures += 1
        data = await self._loop.run_in_executor(None, jpeg, taken[0])
        return Picture(taken[0].index / FPS, data)

    # -- in ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async for raw in self._socket:
                received = time.monotonic()
                self._take(self._wire.parse(raw), received)
                self._recording.add("aero", "in", raw)
                self._activity.set()
            if self._done_at is None:
                raise SampleFailure("aero_socket_lost", "closed before the file was over")
            self._closed = True
            self._activity.set()
        except ConnectionClosed as error:
            self._fail(SampleFailure("aero_socket_lost", f"after {self._sent} units: {error}"))
        except Exception as error:
            self._fail(error)

    def _take(self, event: WireEvent, received: float) -> None:
        match event.kind:
            case "text":
                self._text(event, received)
            case "final":
                self._counts["final_events"] += 1
                self._final = self._final or self._done_at is not None
            case "error":
                raise SampleFailure("aero_error", f"{event.name}: {event.text}")
            case "unknown":
                self._unknown[event.name] += 1
            case other:
                self._counts[f"{other}_events"] += 1

    def _text(self, event: WireEvent, received: float) -> None:
        if self._sent == 0:
            raise SampleFailure("aero_protocol", "text came before the first unit was sent")
        text = event.text
        if self._token_text is not None and event.token_ids:
            text = self._token_text.text(event.token_ids)
        clean = self._wire.markers.sub("", text)
        if not clean:
            self._counts["marker_deltas" if text else "empty_deltas"] += 1
            return
        self._counts["deltas"] += 1
        self._counts["lossy_deltas"] += REPLACEMENT in clean
        input_seq = self._input_seq(event.slot)
        if spoken := clean.replace(REPLACEMENT, ""):
            self._speaker.say(spoken, input_seq, received)
        self._emit(Text(clean, input_seq))
        self._text_times.append(received)
        self._restart_gap()
        self._check_online()

    def _input_seq(self, slot: int | None) -> int:
        """The unit a delta depends on: the slot the server names, or the last unit sent."""
        if slot is not None and 0 <= slot < self._sent:
            return slot
        self._counts["slots_from_the_future"] += slot is not None and slot >= self._sent
        return self._sent - 1

    def _restart_gap(self) -> None:
        if self._gap is not None:
            self._gap.cancel()
        self._gap = self._loop.call_later(self._limits.utterance_gap_s, self._speaker.flush)

    def _check_online(self) -> None:
        """A lock-step server owes at most one token after the last unit; more says it was late."""
        if self._done_at is None:
            return
        self._counts["late_deltas"] += 1
        if self._counts["late_deltas"] > self._limits.late_deltas:
            raise SampleFailure(
                "not_online",
                f"more than {self._limits.late_deltas} deltas came after the input had ended",
                remedy="The Aero server answers late or only after input.done; give it a faster"
                " GPU or repair it",
            )

    # -- end ---------------------------------------------------------------------------------

    async def _end_of_text(self) -> str:
        """Wait for the end of the text.

        Returns:
            ``server_done`` (the final event came), ``server_closed`` (the socket was closed in
            order) or ``idle_timeout`` (the server said nothing more).
        """
        await self._sender
        while not self._closed:
            self._activity.clear()
            try:
                limit = AFTER_FINAL_S if self._final else self._limits.final_event_s
                async with asyncio.timeout(limit):
                    await self._activity.wait()
            except TimeoutError:
                break
        if self._final:
            return "server_done"
        return "server_closed" if self._closed else "idle_timeout"

    def _truncated(self) -> bool:
        """Whether the answer was still running in the last slots: nothing drives it on."""
        return bool(self._text_times) and self._text_times[-1] >= self._done_at - SLOT_S

    def _facts(self) -> dict[str, Any]:
        names = ("deltas", "empty_deltas", "marker_deltas", "lossy_deltas", "late_deltas")
        names += ("final_events", "silence_events", "ignored_events", "slots_from_the_future")
        return {
            **{name: self._counts[name] for name in names},
            "unknown_events": dict(self._unknown),
            "largest_burst": largest_burst(self._text_times, SLOT_S),
            "pictures_sent": self._pictures,
            "wire_lag_ms": percentiles(self._wire_lags_ms),
            **self._speaker.facts(),
        }

    def _fail(self, error: BaseException) -> None:
        """Keep the first failure; later ones follow from it."""
        self.failure = self.failure or error
        self._failed.set()

    async def _unless_failed(self, work: Any) -> Any:
        """The result of `work`, or the failure, whichever comes first."""
        task = asyncio.ensure_future(work)
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait([task, failed], return_when=asyncio.FIRST_COMPLETED)
            if self.failure is not None:
                raise self.failure
            return await task
        finally:
            task.cancel()
            failed.cancel()
