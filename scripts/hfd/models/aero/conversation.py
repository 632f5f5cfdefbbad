"""One sample with the Aero server: units go out, text comes back and goes on to the speaker.

Sender, reader and the speaker's two tasks share one event loop and never wait for each other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hfd.duplex.events import Text
from hfd.duplex.model import Emit
from hfd.duplex.units import Unit
from hfd.media_time import FPS
from hfd.models.aero.settings import Limits
from hfd.models.aero.speaker import Speaker
from hfd.models.aero.vocab import TokenText
from hfd.models.aero.wire import SentFrame, Wire, WireEvent
from hfd.models.media import jpeg
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.measures import largest_burst
from hfd.models.sockets.messages import Names
from hfd.models.sockets.recording import Recording
from hfd.models.sockets.sender import UnitSender

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
        jpeg_quality: int,
        token_text: TokenText | None,
        media_s: float,
        emit: Emit,
        recording: Recording,
    ) -> None:
        self._wire = wire
        self._limits = limits
        self._jpeg_quality = jpeg_quality
        self._token_text = token_text
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._exchange = Exchange(recording)
        self._link = Link("aero", self._exchange)
        self._speaker = Speaker(emit, self._exchange)
        self._issued: dict[str, str | int] = {}
        self._units = UnitSender(
            self._link,
            self._exchange,
            self._messages,
            lambda: wire.done_messages(self._issued),
            media_s=media_s,
            max_lag_s=limits.max_lag_s,
            drain_max_s=limits.drain_max_s,
        )
        self._activity = asyncio.Event()
        self._gap: asyncio.TimerHandle | None = None
        self._frames = 0
        self._heard = 0
        self._final = False
        self._closed = False
        self._counts: Counter[str] = Counter()
        self._unknown = Names()
        self._text_times: list[float] = []

    @property
    def failure(self) -> BaseException | None:
        """The first failure, if there was one."""
        return self._exchange.failure

    async def open(self, aero_url: str, tts_url: str, tts_config: dict[str, Any]) -> None:
        """Connect to both servers and start reading.

        Raises:
            SampleFailure: a server cannot be reached or refuses the session.
        """
        await self._speaker.open(tts_url, tts_config, self._limits.connect_s)
        async with self._link.setup(self._limits.connect_s):
            await self._link.connect(aero_url)
            for message in self._wire.open_messages():
                await self._link.send(message)
            await self._wait_for_values()
        self._exchange.spawn(self._read(), "aero")
        self._sending = self._exchange.spawn(self._units.run())

    async def _wait_for_values(self) -> None:
        """Read on until the server has issued what every unit must carry (a session id)."""
        while not self._issued.keys() >= self._wire.awaited:
            raw, received = await self._link.receive()
            self._take(self._parsed(raw), received)

    def push(self, unit: Unit) -> None:
        """Hand over a unit; returns at once, from any thread."""
        self._units.push(unit)

    async def finish(self) -> dict[str, Any]:
        """Say that the file is over, let the answer and its speech end; return what happened.

        Raises:
            SampleFailure: see `hfd.models.sockets.failures.FAILURES`.
        """
        self._units.end()
        end_reason = await self._exchange.unless_failed(self._end_of_text())
        self._refuse_if_nothing_was_known(end_reason)
        if self._gap is not None:
            self._gap.cancel()
        self._speaker.flush()
        if self._token_text is not None and self._token_text.pending:
            self._counts["lossy_deltas"] += 1  # its other half never came
        await self._exchange.unless_failed(self._speaker.finish(self._limits.speech_idle_s))
        return {"end_reason": end_reason, "truncated": self._truncated(), **self._facts()}

    async def close(self) -> None:
        """Drop both sessions."""
        if self._gap is not None:
            self._gap.cancel()
        await asyncio.gather(self._speaker.close(), self._link.close())
        await self._exchange.close()

    # -- out ---------------------------------------------------------------------------------

    async def _messages(self, unit: Unit) -> Sequence[str | bytes]:
        return self._wire.unit_messages(unit, await self._frame(unit), self._issued)

    async def _frame(self, unit: Unit) -> SentFrame | None:
        """The unit's video frame, if its turn has come; made into a JPEG beside the loop."""
        if not unit.taken:
            return None
        frame = unit.taken[-1]
        self._frames += 1
        data = await self._loop.run_in_executor(None, jpeg, frame, self._jpeg_quality)
        return SentFrame(frame.index / FPS, data)

    # -- in ----------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for raw, received in self._link.messages():
            event = self._parsed(raw)
            self._take(event, received)
            if event.kind not in ("ignored", "unknown"):  # these do not prolong the end
                self._activity.set()
        if self._units.ended is None:
            raise self._link.failure("socket_lost", "closed before the file was over")
        self._closed = True
        self._activity.set()

    def _parsed(self, raw: str | bytes) -> WireEvent:
        try:
            return self._wire.parse(raw)
        except ValueError as error:
            raise self._link.failure("protocol", str(error)) from error

    def _take(self, event: WireEvent, received: float) -> None:
        self._heard += 1
        self._issued.update(event.values)
        match event.kind:
            case "text":
                self._text(event, received)
            case "final":
                self._counts["final_events"] += 1
                self._final = self._final or self._units.ended is not None
            case "error":
                raise self._link.failure("error", f"{event.name}: {event.text}")
            case "unknown":
                self._unknown.add(event.name or "(no name)")
            case other:
                self._counts[f"{other}_events"] += 1

    def _text(self, event: WireEvent, received: float) -> None:
        if self._units.begun == 0:
            raise self._link.failure("protocol", "text came before the first unit was sent")
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
        begun = self._units.begun
        if slot is not None and 0 <= slot < begun:
            return slot
        self._counts["slots_from_the_future"] += slot is not None and slot >= begun
        return begun - 1

    def _restart_gap(self) -> None:
        if self._gap is not None:
            self._gap.cancel()
        self._gap = self._loop.call_later(self._limits.utterance_gap_s, self._speaker.flush)

    def _check_online(self) -> None:
        """A lock-step server owes at most one token after the last unit; more says it was late."""
        if self._units.ended is None:
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
        await self._sending
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

    def _refuse_if_nothing_was_known(self, end_reason: str) -> None:
        """A server whose every event is unknown has not been silent: it was not understood.

        Nor has one that never sent anything, not even an end.
        """
        if not self._heard and end_reason == "idle_timeout":
            raise self._link.failure("stalled", "no message came at all, not even an end")
        known = ("deltas", "empty_deltas", "marker_deltas", "silence_events")
        if self._unknown and not any(self._counts[name] for name in known):
            seen = ", ".join(f"{name} ({n})" for name, n in self._unknown.record().items())
            raise self._link.failure(
                "unknown_events",
                f"no text and no silence that {self._wire.name} knows came, but: {seen}",
                remedy="Run once with record: true and mend the wire file (docs/aero.md)",
            )

    def _truncated(self) -> bool:
        """Whether the answer was still running in the last slots: nothing drives it on."""
        ended = self._units.ended
        return ended is not None and self._text_times[-1:] >= [ended - SLOT_S]

    def _facts(self) -> dict[str, Any]:
        names = ["deltas", "empty_deltas", "marker_deltas", "lossy_deltas", "late_deltas"]
        names += ["final_events", "silence_events", "ignored_events", "slots_from_the_future"]
        return {
            **{name: self._counts[name] for name in names},
            "unknown_events": self._unknown.record(),
            "largest_burst": largest_burst(self._text_times, SLOT_S),
            "pictures_sent": self._frames,
            **self._units.facts(),
            **self._speaker.facts(),
        }
