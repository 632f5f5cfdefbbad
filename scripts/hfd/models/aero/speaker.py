"""The way from text to speech: a client of ``/v1/tts/stream`` (docs/tts_protocol.md).

Text goes out the moment it is put in; sound comes back while later text is still unknown. Sending
and receiving are two tasks that never wait for each other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from hfd.duplex.events import Audio, Control, ControlKind, Metric
from hfd.duplex.model import Emit
from hfd.models.aero.ending import SampleFailure, percentiles
from hfd.models.aero.recording import Recording
from hfd.models.tts import protocol

MAX_FRAME_BYTES = 64 << 20
PING_S = {"ping_interval": 20, "ping_timeout": 120}


class Speaker:
    """One session with the TTS server: one sample.

    Attributes:
        ready: what the server said of itself.
        over: set when the server has spoken everything.
    """

    def __init__(
        self, emit: Emit, fail: Callable[[BaseException], None], recording: Recording
    ) -> None:
        self.ready: dict[str, Any] = {}
        self.over = asyncio.Event()
        self._emit = emit
        self._fail = fail
        self._recording = recording
        self._progress = asyncio.Event()
        self._outbox: asyncio.Queue[tuple[dict[str, Any], float] | None] = asyncio.Queue()
        self._input_seqs: list[int] = []  # by text seq
        self._delays_ms: list[float] = []
        self._utterances: list[dict[str, Any]] = []
        self._samples: dict[int, int] = {}  # by utterance
        self._text_open = self._finishing = False
        self._socket: ClientConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, url: str, config: dict[str, Any], timeout_s: float) -> None:
        """Connect and agree on the session.

        Raises:
            SampleFailure: ``tts_connect_failed``, ``tts_protocol``.
        """
        try:
            async with asyncio.timeout(timeout_s):
                self._socket = await connect(
                    url, max_size=MAX_FRAME_BYTES, compression=None, proxy=None, **PING_S
                )
                await self._socket.send(json.dumps({"type": protocol.CONFIG, **config}))
                self.ready = json.loads(await self._socket.recv())
        except (OSError, TimeoutError, ConnectionClosed) as error:
            raise SampleFailure(
                "tts_connect_failed", f"no TTS session ({type(error).__name__}: {error})"
            ) from error
        if self.ready.get("type") == protocol.ERROR:
            raise SampleFailure("tts_connect_failed", str(self.ready.get("message")))
        told = (self.ready.get("sample_rate"), self.ready.get("frame_samples"))
        if told != (protocol.SAMPLE_RATE, protocol.FRAME_SAMPLES):
            raise SampleFailure("tts_protocol", f"the TTS server offers {told} samples")
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive())]

    def say(self, text: str, input_seq: int, received: float) -> None:
        """Forward a delta at once; `received` is the monotonic time at which it came.

        Raises:
            SampleFailure: ``not_online``, the end has been told to the TTS server already.
        """
        if self._finishing:
            raise SampleFailure("not_online", "text came after its end, when none could be spoken")
        message = {"type": protocol.TEXT, "seq": len(self._input_seqs), "text": text}
        self._input_seqs.append(input_seq)
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
                raise SampleFailure(
                    "tts_stalled", f"the TTS server said nothing for {idle_s:g} s"
                ) from error

    async def close(self) -> None:
        """Drop the session; the server stops speaking."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()

    def facts(self) -> dict[str, Any]:
        """Counts and delays of the whole session."""
        return {
            "forward_delay_ms": percentiles(self._delays_ms),
            "tts": {
                "utterances": self._utterances,
                **{
                    key: sum(utterance[key] for utterance in self._utterances)
                    for key in ("frames", "samples", "starved_steps", "pad_steps", "segments")
                },
            },
        }

    async def _send(self) -> None:
        try:
            while (item := await self._outbox.get()) is not None:
                message, received = item
                raw = json.dumps(message, ensure_ascii=False)
                await self._socket.send(raw)
                delay_ms = (time.monotonic() - received) * 1000
                self._recording.add("tts", "out", raw)
                if message["type"] == protocol.TEXT:
                    self._delays_ms.append(delay_ms)
                    self._emit(
                        Metric(
                            "forward",
                            {"text_seq": message["seq"], "delay_ms": round(delay_ms, 3)},
                            self._input_seqs[message["seq"]],
                        )
                    )
        except ConnectionClosed as error:
            self._fail(SampleFailure("tts_socket_lost", str(error)))
        except Exception as error:
            self._fail(error)

    async def _receive(self) -> None:
        try:
            while not self.over.is_set():
                raw = await self._socket.recv()
                self._recording.add("tts", "in", raw)
                await self._message(json.loads(raw))
                self._progress.set()
        except ConnectionClosed as error:
            self._fail(SampleFailure("tts_socket_lost", str(error)))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self._fail(SampleFailure("tts_protocol", f"{type(error).__name__}: {error}"))
        except Exception as error:
            self._fail(error)

    async def _message(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case protocol.START:
                self._samples[message["utterance"]] = 0
                self._emit(Control(ControlKind.SPEAK, {"utterance": message["utterance"]}))
            case protocol.CHUNK:
                await self._chunk(message)
            case protocol.AUDIO_DONE:
                self._utterance_done(message)
            case protocol.SESSION_DONE:
                self.over.set()
            case protocol.ERROR:
                raise SampleFailure("tts_error", f"{message['code']}: {message['message']}")
            case other:
                raise ValueError(f"unknown message {other!r}")

    async def _chunk(self, header: dict[str, Any]) -> None:
        """A header and its PCM: exactly 1920 samples a frame, and only of text that was sent."""
        pcm = await self._socket.recv()
        self._recording.add("tts", "in", pcm)
        if isinstance(pcm, str):
            await self._message(json.loads(pcm))  # an error in place of the sound
            raise ValueError("a chunk without its sound")
        due = header["frames"] * protocol.FRAME_SAMPLES
        if header["samples"] != due or len(pcm) != due * 2:
            raise ValueError(f"{len(pcm)} bytes for {header['frames']} frames, not {due * 2}")
        if header["frame_index"] * protocol.FRAME_SAMPLES != self._samples[header["utterance"]]:
            raise ValueError(f"frame {header['frame_index']} is out of order")
        self._samples[header["utterance"]] += due
        if not 0 <= header["text_seq_consumed"] < len(self._input_seqs):
            raise ValueError(f"depends on text {header['text_seq_consumed']}, which was not sent")
        input_seq = self._input_seqs[header["text_seq_consumed"]]
        self._emit(Audio(np.frombuffer(pcm, "<i2").astype(np.int16), input_seq))

    def _utterance_done(self, message: dict[str, Any]) -> None:
        samples = self._samples[message["utterance"]]
        if samples != message["samples"] or samples != message["frames"] * protocol.FRAME_SAMPLES:
            raise ValueError(
                f"{samples} samples received, {message['samples']} announced"
                f" for {message['frames']} frames"
            )
        outcome = {key: value for key, value in message.items() if key != "type"}
        self._utterances.append(outcome)
        self._emit(Control(ControlKind.TURN_END, {"eos": message["eos"]}))
