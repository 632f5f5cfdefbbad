"""One sample with a realtime service: what its facts mean for the listener and for the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from typing import Any

from hfd.duplex.events import Event
from hfd.duplex.model import Emit
from hfd.duplex.units import Unit
from hfd.models.realtime import facts as said
from hfd.models.realtime.answers import Answers
from hfd.models.realtime.dialect import Dialect, Message
from hfd.models.realtime.echo import differences, numbers, shown
from hfd.models.realtime.listener import Listener, MediaClock
from hfd.models.realtime.sound import Outgoing
from hfd.models.realtime.video import QUALITY, jpeg_within
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.messages import Names
from hfd.models.sockets.sender import UnitSender

PEER = "server"
WATCH_S = 0.05
LAST_WORDS_S = 0.2
"""An answer that is audible this close to the end of an input-clocked stream was cut by it."""
GOODBYE_S = 2.0
COUNTED = (
    "answers",
    "answers_cancelled",
    "listen_decisions",
    "speak_decisions",
    "late_sounds_dropped",
    "late_words_dropped",
    "frames_sent",
    "going_away",
)
"""What every result of a realtime service counts, also where it is 0."""


class Talk:
    """One open session. All methods but `push` run in the event loop's thread."""

    def __init__(self, dialect: Dialect, exchange: Exchange, media_s: float, emit: Emit) -> None:
        self._dialect = dialect
        self._traits = dialect.traits
        self._settings = dialect.settings
        self._exchange = exchange
        self._emit_event = emit
        self._link = Link(PEER, exchange)
        self._outgoing = Outgoing(self._traits)
        self._media_clock = MediaClock() if self._settings.input_clock == "require" else None
        self._listener = Listener(
            self._traits.output_rate,
            self._media_clock.now if self._media_clock else time.monotonic,
            continuous=self._traits.stream == "continuous",
        )
        self._units = UnitSender(
            self._link,
            exchange,
            self._messages,
            dialect.ending,
            media_s=media_s,
            max_lag_s=self._settings.max_lag_s,
            drain_max_s=self._settings.drain_max_s,
            in_real_time=self._media_clock is None,
        )
        self._session: Mapping[str, Any] | None = None
        self._answers = Answers(
            dialect, self._link, self._listener, self._emit, self._send_soon, self._newest_input
        )
        self._finished: str | None = None
        self._closed = False
        self._over = self._said_goodbye = False
        self._last_fact = time.monotonic()
        self._understood = False
        self._processed = -1
        self._acknowledged = asyncio.Event()
        self._others = Names()
        self._reduced: list[dict[str, int | None]] = []
        self._session_usage: Mapping[str, Any] = {}
        self._rtt_ms: list[float] = []
        self._began = time.monotonic()

    # -- begin -------------------------------------------------------------------------------

    async def open(self, url: str, key: str) -> None:
        """Connect and agree on the session.

        Raises:
            SampleFailure: no connection, a refusal, or a session that is not what was asked for.
        """
        async with self._link.setup(self._settings.setup_s):
            await self._link.connect(url, self._dialect.headers(key))
            for message in self._dialect.opening():
                await self._link.send(message)
            while self._session is None:
                raw, _ = await self._link.receive()
                for fact in self._read(raw):
                    self._opening_fact(fact)
        self._check_session()
        self._exchange.spawn(self._read_all(), PEER)
        self._sending = self._exchange.spawn(self._units.run(), PEER)
        self._exchange.spawn(self._watch(), PEER)
        self._exchange.spawn(self._measure_rtt(), PEER)

    @property
    def failure(self) -> BaseException | None:
        """The first failure, if there was one."""
        return self._exchange.failure

    @property
    def session(self) -> Mapping[str, Any]:
        """The session as the server echoed it, without secrets."""
        return self._without_secrets(dict(self._session or {}))

    def _without_secrets(self, content: dict[str, Any]) -> dict[str, Any]:
        """JSON values in which a server may have echoed a key."""
        hidden: dict[str, Any] = json.loads(self._exchange.secrets.hide(json.dumps(content)))
        return hidden

    def _read(self, raw: str | bytes) -> list[said.Fact]:
        try:
            return list(self._dialect.read(raw))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            text = f"a message that is none of this dialect ({type(error).__name__}: {error})"
            raise self._link.failure("protocol", text) from error

    def _opening_fact(self, fact: said.Fact) -> None:
        match fact:
            case said.Opened(session):
                self._session = session
            case said.Failed(code, text, kind=kind):
                raise self._link.failure("busy" if kind == "busy" else "refused", f"{code}: {text}")
            case said.Other(name):
                self._others.add(name)

    def _check_session(self) -> None:
        """What the server says that it will do must not differ from what was asked for."""
        expected = {**self._dialect.relied_on(), **self._settings.expected_session}
        if wrong := differences(self.session, expected):
            remedy = "Ask for what the service can do, or leave the key out"
            raise self._link.failure("refused", f"the session has {'; '.join(wrong)}", remedy)

    # -- out ---------------------------------------------------------------------------------

    def push(self, unit: Unit) -> None:
        """Hand over a unit; returns at once, from any thread."""
        self._units.push(unit)

    async def push_and_wait(self, unit: Unit) -> None:
        """Input clock: return when the server has taken the unit in and said what came of it."""
        assert self._media_clock is not None
        self._media_clock.begin(unit.t1)
        self._acknowledged.clear()
        self._units.push(unit)
        try:
            async with asyncio.timeout(self._settings.stall_s):
                while self._processed < unit.index:
                    await self._exchange.unless_failed(self._acknowledged.wait())
                    self._acknowledged.clear()
        except TimeoutError as error:
            raise self._link.failure(
                "protocol",
                f"unit {unit.index} was not acknowledged within {self._settings.stall_s:g} s",
                "This server does not know the input clock: write input_clock: off",
            ) from error
        finally:
            self._media_clock.end()

    async def _messages(self, unit: Unit) -> list[Message]:
        frames = []
        for frame in unit.taken:
            data, made = await asyncio.to_thread(jpeg_within, frame, self._traits.max_frame_bytes)
            frames.append(data)
            if made["quality"] != QUALITY:
                self._reduced.append(made)
        self._answers.counts["frames_sent"] += len(frames)
        pieces = self._outgoing(unit) or [b""]
        messages: list[Message] = []
        for number, piece in enumerate(pieces):
            messages += self._dialect.unit(piece, frames if number == 0 else ())
        return messages

    def _send_soon(self, message: Message) -> None:
        if not self._said_goodbye:
            self._exchange.spawn(self._send_aside(message), PEER)

    async def _send_aside(self, message: Message) -> None:
        """Send what needs no answer: a server that has closed in order need not hear it."""
        try:
            await self._link.send(message)
        except SampleFailure:
            if not self._link.closed_in_order:
                raise

    # -- in ----------------------------------------------------------------------------------

    async def _read_all(self) -> None:
        async for raw, _ in self._link.messages():
            for fact in self._read(raw):
                self._take(fact)
        if self._units.ended is None:
            raise self._link.failure("socket_lost", "closed in order before the file was over")
        self._closed = True

    def _take(self, fact: said.Fact) -> None:
        if not isinstance(fact, said.Other | said.Usage):
            self._last_fact = time.monotonic()
            self._understood |= not isinstance(fact, said.Opened)
        match fact:
            case said.Processed(index):
                self._processed = max(self._processed, index)
                self._acknowledged.set()
            case said.Usage(values):
                self._session_usage = {**self._session_usage, **values}
            case said.GoingAway(seconds):
                self._going_away(seconds)
            case said.Failed():
                self._failed(fact)
            case said.Finished(reason):
                self._finished = reason
            case said.Opened(session):
                self._session = session or self._session
            case said.Other(name):
                self._others.add(name)
            case _:
                self._answers.take(fact)

    def _going_away(self, seconds: float) -> None:
        self._answers.counts["going_away"] += 1
        if seconds <= 0:
            raise self._link.failure("socket_lost", "the server ended the session by itself")

    def _failed(self, failed: said.Failed) -> None:
        if failed.fatal:
            kind = "busy" if failed.kind == "busy" else "error"
            raise self._link.failure(kind, f"{failed.code}: {failed.text}")
        self._others.add(f"error {failed.code}")

    def _newest_input(self) -> int:
        """The newest unit that could have been heard; with acknowledgements, the one that was."""
        newest = self._units.begun - 1
        if self._processed >= 0 or self._media_clock:
            return min(self._processed + 1, newest)
        return newest

    def _emit(self, event: Event) -> None:
        if not self._over:
            self._emit_event(event)

    # -- time --------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """An answer that has begun and of which nothing comes any more fails the sample."""
        while True:
            await asyncio.sleep(WATCH_S)
            silent_s = time.monotonic() - self._last_fact
            if self._answers.open and silent_s > self._settings.stall_s and not self._over:
                text = f"nothing came of an open answer for {self._settings.stall_s:g} s"
                raise self._link.failure("stalled", text)
            self._answers.acknowledge_played()

    async def _measure_rtt(self) -> None:
        with contextlib.suppress(SampleFailure):  # the reader tells of a lost connection
            self._rtt_ms.append(await self._link.ping_ms())

    # -- end ---------------------------------------------------------------------------------

    async def finish(self) -> dict[str, Any]:
        """The file is over: let the answer end, close the session; return what happened.

        Raises:
            SampleFailure: see `hfd.models.sockets.failures.FAILURES`.
        """
        self._units.end()
        await self._exchange.unless_failed(self._sending)
        end_reason = await self._exchange.unless_failed(self._end())
        self._refuse_if_nothing_was_known()
        truncated = self._truncated(end_reason)
        await self._exchange.unless_failed(self._say_goodbye())
        self._over = True
        facts = {"end_reason": end_reason, "truncated": truncated, **self._facts()}
        return self._without_secrets(facts)

    async def _end(self) -> str:
        """Wait until nothing is open, nothing is left to be heard, and nothing more comes."""
        if self._media_clock is not None:
            return "input_clock_stopped"  # every unit was acknowledged after all that came of it
        while True:
            if self._closed and self._answers.open and not self._finished:
                raise self._link.failure("socket_lost", "closed while an answer was open")
            if self._finished or self._closed:
                return self._finished or "server_closed"
            quiet_s = time.monotonic() - max(self._answers.last_meant, self._units.ended or 0.0)
            if quiet_s >= self._settings.idle_s and not self._awaits_more():
                return "input_clock_stopped" if self._traits.input_clock else "idle"
            await asyncio.sleep(WATCH_S)

    def _awaits_more(self) -> bool:
        """Whether an answer is open or still to be heard.

        Of a complete answer that plays on beyond all limits nothing is lost by not waiting.
        """
        if self._traits.input_clock:
            return False
        since_end_s = time.monotonic() - (self._units.ended or 0.0)
        has_time = since_end_s + 2 * self._settings.idle_s < self._settings.drain_max_s
        return bool(self._answers.open) or (self._listener.left_s > 0 and has_time)

    def _refuse_if_nothing_was_known(self) -> None:
        """A server that speaks another dialect has not been silent: it was not understood."""
        names = self._others.record()
        foreign = [name for name in names if not name.startswith(self._dialect.families)]
        if foreign and not self._understood:
            seen = ", ".join(f"{name} ({names[name]})" for name in foreign)
            raise self._link.failure(
                "unknown_events",
                f"nothing came that this dialect knows, but: {seen}",
                remedy="Look at the messages with record: true; another dialect may fit",
            )

    async def _say_goodbye(self) -> None:
        """Close in order; a server that does not answer is left within `GOODBYE_S`.

        A session that is only dropped may be kept for its client to come back, and fill the server.
        """
        said_already, self._said_goodbye = self._said_goodbye, True
        if self._session is None or said_already or self._finished or self._closed:
            return
        goodbye = self._dialect.goodbye()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                for message in goodbye:
                    await self._send_aside(message)
                while goodbye and not (self._finished or self._closed or self.failure):
                    await asyncio.sleep(WATCH_S)

    def _truncated(self, end_reason: str) -> bool:
        """Whether an answer was cut by a limit of the server or by the end of its clock."""
        if self._answers.limited_by or self._answers.open:
            return True
        last = self._answers.last_audible
        return end_reason == "input_clock_stopped" and last >= self._last_fact - LAST_WORDS_S

    def used(self) -> dict[str, float]:
        """What the service has counted in this session, by dotted name."""
        return {**self._answers.usage, **numbers(self._session_usage, "session.")}

    async def close(self) -> None:
        """Drop the session."""
        self._over = True
        with contextlib.suppress(SampleFailure):
            await self._say_goodbye()
        await self._link.close()
        await self._exchange.close()

    def _facts(self) -> dict[str, Any]:
        counts = self._answers.counts
        answered = counts["listen_decisions"] + counts["sounds"]
        silence = max(0, answered - self._units.sent) if self._traits.answers_units else None
        return {
            **{name: counts[name] for name in COUNTED},
            "frames_reduced": self._reduced,
            "unknown_events": self._others.record(),
            "effective_session": shown(self.session),
            "server_silence_units": silence,
            "limited_by": self._answers.limited_by or None,
            "heard": {
                "reported": bool(self._answers.cuts) and self._traits.hears_playback,
                "model_believes": "heard_ms" if self._traits.hears_playback else "all_sent",
                "cuts": self._answers.cuts,
            },
            "silence_absorbed_ms": round(self._listener.absorbed_s * 1000, 3),
            "stall_ms_max": round(self._listener.stalled_s * 1000, 3),
            "rtt_ms": [round(value, 3) for value in (*self._rtt_ms, self._link.latency_ms)],
            "usage": {"answers": self._answers.usage, "session": dict(self._session_usage)},
            "session_s": round(time.monotonic() - self._began, 3),
            "input_acknowledged": self._processed >= 0,
            **self._units.facts(),
        }
