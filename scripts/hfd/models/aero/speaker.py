"""The way from text to speech: a client of ``/v1/tts/stream`` (docs/tts_protocol.md).

Text goes out the moment it is put in; sound comes back while later text is still unknown. Sending
and receiving are two tasks that never wait for each other.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Metric
from hfd.duplex.model import Emit
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.measures import percentiles
from hfd.models.sockets.messages import read_object, whole_number
from hfd.models.tts import protocol

COUNTS = ("tokens", "starved_steps", "pad_steps", "segments")
"""What is kept of every utterance, and its sum over the session."""


class Speaker:
    """One session with the TTS server: one sample.

    Attributes:
        ready: what the server said of itself.
        over: set when the server has spoken everything.
    """

    def __init__(self, emit: Emit, exchange: Exchange) -> None:
        self.ready: dict[str, Any] = {}
        self.over = asyncio.Event()
        self._emit = emit
        self._exchange = exchange
        self._link = Link("tts", exchange)
        self._progress = asyncio.Event()
        self._outbox: asyncio.Queue[tuple[dict[str, Any], float] | None] = asyncio.Queue()
        self._input_seqs: list[int] = []  # by text seq
        self._delays_ms: list[float] = []
        self._utterances: list[dict[str, Any]] = []
        self._samples: dict[int, int] = {}  # by utterance
        self._opened = 0  # utterances that text was sent for
        self._consumed = -1  # latest text that sound depends on
        self._text_open = self._finishing = False

    async def open(self, url: str, config: dict[str, Any], timeout_s: float) -> None:
        """Connect and agree on the session.

        Raises:
            SampleFailure: ``tts_connect_failed``, ``tts_refused``, ``tts_protocol``.
        """
        async with self._link.setup(timeout_s):
            await self._link.connect(url)
            await self._link.send(json.dumps({"type": protocol.CONFIG, **config}))
            raw, _ = await self._link.receive()
        self.ready = self._read_ready(raw)
        self._exchange.spawn(self._send(), "tts")
        self._exchange.spawn(self._receive(), "tts")

    def _read_ready(self, raw: str | bytes) -> dict[str, Any]:
        try:
            ready = read_object(raw)
        except ValueError as error:
            raise self._link.failure(
                "protocol", f"as an answer to the configuration: {error}"
            ) from error
        if ready.get("type") == protocol.ERROR:
            raise self._link.failure("refused", str(ready.get("message")))
        told = (ready.get("sample_rate"), ready.get("frame_samples"))
        if told != (protocol.SAMPLE_RATE, protocol.FRAME_SAMPLES):
            raise self._link.failure("protocol", f"the TTS server offers {told} samples")
        return ready

    def say(self, text: str, input_seq: int, received: float) -> None:
        """Forward a delta at once; `received` is the monotonic time at which it came.

        Raises:
            SampleFailure: ``not_online``, the end has been told to the TTS server already.
        """
        if self._finishing:
            raise SampleFailure("not_online", "text came after its end, when none could be spoken")
        message = {"type": protocol.TEXT, "seq": len(self._input_seqs), "text": text}
        self._input_seqs.append(input_seq)
        self._opened += not self._text_open
        self._text_open = True
        self._outbox.put_nowait((message, received))

    def flush(self) -> None:
        """The utterance is over; the next text starts another."""
        if self._text_open:
            self._text_open = False
            self._outbox.put_nowait(({"type": protocol.FLUSH}, time.monotonic()))

    async def finish(self, idle_s: float) -> None:
        """No text will come; return when everything has been spoken.

        Raises:
            SampleFailure: ``tts_stalled``, the server said nothing for `idle_s`.
        """
        self._finishing = True
        self._outbox.put_nowait(({"type": protocol.DONE}, time.monotonic()))
        self._outbox.put_nowait(None)
        while not self.over.is_set():
            self._progress.clear()
            try:
                async with asyncio.timeout(idle_s):
                    await self._progress.wait()
            except TimeoutError as error:
                text = f"the TTS server said nothing for {idle_s:g} s"
                raise self._link.failure("stalled", text) from error

    async def close(self) -> None:
        """Drop the session; the server stops speaking."""
        await self._link.close()

    def facts(self) -> dict[str, Any]:
        """Counts and delays of the whole session."""
        return {
            "forward_delay_ms": percentiles(self._delays_ms),
            "tts": {
                "utterances": self._utterances,
                **{
                    key: sum(utterance[key] for utterance in self._utterances)
                    for key in ("frames", "samples", *COUNTS)
                },
            },
        }

    async def _send(self) -> None:
        while (item := await self._outbox.get()) is not None:
            message, received = item
            await self._link.send(json.dumps(message, ensure_ascii=False))
            delay_ms = (time.monotonic() - received) * 1000
            if message["type"] == protocol.TEXT:
                self._delays_ms.append(delay_ms)
                values = {"text_seq": message["seq"], "delay_ms": round(delay_ms, 3)}
                self._emit(Metric("forward", values, self._input_seqs[message["seq"]]))

    async def _receive(self) -> None:
        while not self.over.is_set():
            raw, _ = await self._link.receive()
            await self._message(read_object(raw))
            self._progress.set()

    async def _message(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case protocol.START:
                self._started(whole_number(message, "utterance"))
            case protocol.CHUNK:
                await self._chunk(message)
            case protocol.AUDIO_DONE:
                self._utterance_done(message)
            case protocol.SESSION_DONE:
                self._session_done()
            case protocol.ERROR:
                raise self._link.failure("error", f"{message['code']}: {message['message']}")
            case other:
                raise ValueError(f"unknown message {other!r:.80}")

    def _started(self, utterance: int) -> None:
        if utterance != len(self._samples) or utterance >= self._opened:
            raise ValueError(f"utterance {utterance} begins, which is not the next of the text")
        self._samples[utterance] = 0
        self._emit(Control(ControlKind.SPEAK, {"utterance": utterance}))

    async def _chunk(self, header: dict[str, Any]) -> None:
        """A header and its PCM: exactly 1920 samples a frame, and only of text that was sent."""
        pcm, _ = await self._link.receive()
        if isinstance(pcm, str):
            await self._message(read_object(pcm))  # an error in place of the sound
            raise ValueError("a chunk without its sound")
        frames, samples, first, utterance, consumed = (
            whole_number(header, key)
            for key in ("frames", "samples", "frame_index", "utterance", "text_seq_consumed")
        )
        due = frames * protocol.FRAME_SAMPLES
        if not due or samples != due or len(pcm) != due * 2:
            raise ValueError(f"{len(pcm)} bytes for {frames} frames, not {due * 2}")
        if utterance != len(self._utterances):
            raise ValueError(f"sound of utterance {utterance}, which is not the one that speaks")
        if first * protocol.FRAME_SAMPLES != self._samples[utterance]:
            raise ValueError(f"frame {first} is out of order")
        self._samples[utterance] += due
        if consumed >= len(self._input_seqs):
            raise ValueError(f"depends on text {consumed}, which was not sent")
        self._consumed = max(self._consumed, consumed)
        self._emit(Audio(np.frombuffer(pcm, "<i2").astype(np.int16), self._input_seqs[consumed]))

    def _utterance_done(self, message: dict[str, Any]) -> None:
        utterance = whole_number(message, "utterance")
        if utterance != len(self._utterances):
            raise ValueError(f"utterance {utterance} is over, which is not the one that speaks")
        counts = {key: whole_number(message, key) for key in ("samples", "frames", *COUNTS)}
        samples = self._samples[utterance]
        if samples != counts["samples"] or samples != counts["frames"] * protocol.FRAME_SAMPLES:
            raise ValueError(
                f"{samples} samples received, {counts['samples']} announced"
                f" for {counts['frames']} frames"
            )
        outcome = {"utterance": utterance, "eos": str(message["eos"])[:40], **counts}
        self._utterances.append(outcome)
        self._emit(Control(ControlKind.TURN_END, {"eos": outcome["eos"]}))

    def _session_done(self) -> None:
        """Believed only if everything that was said to the server has been spoken."""
        if not self._finishing or not self._outbox.empty():
            raise self._link.failure("incomplete", "it ended the session before the text was over")
        done, last = len(self._utterances), len(self._input_seqs) - 1
        if done != self._opened:
            raise self._link.failure(
                "incomplete", f"it spoke {done} of {self._opened} utterances to their end"
            )
        if self._consumed != last:
            raise self._link.failure(
                "incomplete", f"its speech ends with text {self._consumed} of {last}"
            )
        self.over.set()
