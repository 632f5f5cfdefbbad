"""The websocket ``/v1/tts/stream`` and the health page (docs/tts_protocol.md).

Sockets live in the asyncio thread, the talker in one of its own (`hfd.models.tts.schedule`). What a
client says can end its session and nothing else; a broken voice ends the process, so that whoever
started it starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from hfd.models.tts import messages, protocol
from hfd.models.tts.messages import ProtocolError
from hfd.models.tts.schedule import Job, Talker
from hfd.models.tts.speech import Chunk, Manner, Outcome, Policy, Speech, TextFeed, Voice

log = logging.getLogger("tts")
CONFIG_TIMEOUT_S = 10.0
LAST_WORDS_S = 2.0
"""How long sessions have to tell their clients that the voice is broken."""


class VoiceFailed(Exception):
    """The talker or its device broke; it does not heal."""


@dataclass(frozen=True)
class Offer:
    """What the server speaks with, and what a session may choose from.

    Attributes:
        voice: the talker.
        info: model, weights, device and acceleration, as said in ``session.ready``.
        speakers, languages: the names a session may choose; the first is the default.
        emit_every: frames of the first chunks; the last of them holds for all others.
        policy: waiting, padding and caps.
    """

    voice: Voice
    info: dict[str, Any]
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    emit_every: tuple[int, ...] = (1,)
    policy: Policy = dataclasses.field(default_factory=Policy)


class TtsServer:
    """All sessions of one talker; made inside the event loop that serves them."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.sessions = 0
        self.talker = Talker(offer.voice, offer.policy)
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._talk, name="talker", daemon=True).start()

    async def run(self, host: str, port: int) -> None:
        """Serve until cancelled."""
        async with serve(
            self._connection,
            host,
            port,
            process_request=self._health,
            max_size=protocol.MAX_MESSAGE_BYTES,
            compression=None,
            ping_interval=20,
            ping_timeout=120,
        ) as server:
            address = server.sockets[0].getsockname()
            log.info("ready on ws://%s:%d%s", address[0], address[1], protocol.PATH)
            await server.serve_forever()

    def _talk(self) -> None:
        """The talker's thread; it ends only when the voice breaks."""
        try:
            self.talker.run()
        except Exception as error:
            log.exception("the talker failed")
            self._loop.call_soon_threadsafe(self._break, error)

    def _break(self, error: Exception) -> None:
        self.broken.set_exception(VoiceFailed(f"{type(error).__name__}: {error}"))
        self.broken.exception()  # nobody need be there to hear it
        self._loop.call_later(LAST_WORDS_S if self.sessions else 0.0, _leave)

    def _health(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer plain HTTP; None lets a websocket on the right path through."""
        path = request.path.partition("?")[0]
        if path == protocol.PATH:
            return None
        if path != protocol.HEALTH_PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, "Not found\n")
        state = {
            "status": "ok",
            **self.offer.info,
            "slots": self.offer.voice.slots,
            "sessions": self.sessions,
            "utterances_waiting": self.talker.waiting,
            "frames": self.talker.frames,
        }
        body = json.dumps(state).encode()
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body))})
        return Response(HTTPStatus.OK, "OK", headers, body)

    async def _connection(self, socket: ServerConnection) -> None:
        self.sessions += 1
        session = Session(self, socket)
        try:
            await session.run()
        except ConnectionClosed:
            log.info("a client went away")
        except ProtocolError as error:
            await session.fail(error.code, str(error))
        except VoiceFailed as error:
            await session.fail("voice_failed", str(error))
        except Exception as error:
            log.exception("a session failed")
            await session.fail("session_failed", f"{type(error).__name__}: {error}")
        finally:
            session.cancel()
            self.sessions -= 1


class Utterance:
    """One stretch of speech: its feed, and where its chunks go."""

    def __init__(self, number: int, session: Session, server: TtsServer) -> None:
        self.number = number
        self.feed = TextFeed(server.talker.wake)
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._outbox = session.outbox
        self._samples = self._chunks = 0
        choice = session.choice
        speech = Speech(
            self.feed, choice.manner, server.offer.policy, choice.emit_every, self._chunk
        )
        self.job = Job(speech, self._done, self._start, session)

    # In the talker's thread:

    def _start(self) -> None:
        self._outbox.put({"type": protocol.START, "utterance": self.number})

    def _chunk(self, chunk: Chunk) -> None:
        header = {
            "type": protocol.CHUNK,
            "utterance": self.number,
            "seq": self._chunks,
            "frame_index": chunk.frame_index,
            "frames": chunk.frames,
            "samples": len(chunk.pcm),
            "text_seq_consumed": chunk.text_seq_consumed,
            "starved": chunk.starved,
            "compute_ms": round(chunk.compute_s * 1000, 3),
        }
        self._outbox.put(header, chunk.pcm.astype("<i2").tobytes())
        self._samples += len(chunk.pcm)
        self._chunks += 1

    def _done(self, outcome: Outcome | Exception) -> None:
        if isinstance(outcome, Exception):
            return  # the server tells all sessions
        done = dataclasses.asdict(outcome)
        done["starved_s"] = round(outcome.starved_s, 3)
        header = {"type": protocol.AUDIO_DONE, "utterance": self.number}
        self._outbox.put(header | {"samples": self._samples, **done})
        self._outbox.after(lambda: self._tell(outcome))

    def _tell(self, outcome: Outcome) -> None:
        if not self.outcome.done():  # else its session is over and waits no more
            self.outcome.set_result(outcome)


class Outbox:
    """Messages from the talker's thread to one socket, in order; a chunk's parts stay together."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[dict[str, Any], bytes | None] | None] = asyncio.Queue()

    def put(self, message: dict[str, Any], pcm: bytes | None = None) -> None:
        """Hand over a message; from any thread."""
        self.after(lambda: self._queue.put_nowait((message, pcm)))

    def after(self, call: Callable[[], None]) -> None:
        """Call in the event loop, after all that was put before; from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Let `drain` return after all that was put before."""
        self.after(lambda: self._queue.put_nowait(None))

    async def drain(self) -> None:
        """Send everything, until `close`."""
        while (item := await self._queue.get()) is not None:
            message, pcm = item
            await self._socket.send(json.dumps(message))
            if pcm is not None:
                await self._socket.send(pcm)


class Session:
    """One client: reads its text, opens utterances, ends when all have been spoken.

    Attributes:
        choice: what ``session.config`` chose.
        outbox: what is to be sent.
    """

    def __init__(self, server: TtsServer, socket: ServerConnection) -> None:
        self.choice = messages.Choice(Manner("", "", 0), (1,), 1)
        self.outbox = Outbox(socket)
        self._server = server
        self._socket = socket
        self._utterances: list[Utterance] = []
        self._current: Utterance | None = None
        self._last_seq = -1
        self._tokens = 0
        self._text_over = asyncio.Event()

    async def run(self) -> None:
        """From ``session.config`` to ``session.done``."""
        await self._configure()
        speaking = asyncio.create_task(self._speak())
        tasks = [speaking, asyncio.create_task(self._read())]
        try:
            await asyncio.wait([*tasks, self._server.broken], return_when=asyncio.FIRST_COMPLETED)
            if self._server.broken.done():
                self._server.broken.result()
            for task in tasks:  # `_read` ends only with what ended it
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def cancel(self) -> None:
        """Stop speaking; the talker goes on with others at its next frame."""
        for utterance in self._utterances:
            utterance.feed.cancel()

    async def fail(self, code: str, message: str) -> None:
        """Tell the client what went wrong and close."""
        try:
            error = {"type": protocol.ERROR, "code": code, "message": message}
            await self._socket.send(json.dumps(error))
            await self._socket.close(1011 if code.endswith("_failed") else 1008, code)
        except ConnectionClosed:
            return

    async def _configure(self) -> None:
        offer = self._server.offer
        try:
            async with asyncio.timeout(CONFIG_TIMEOUT_S):
                raw = await self._socket.recv()
        except TimeoutError as error:
            raise ProtocolError("config_timeout", "no session.config came") from error
        config = await asyncio.to_thread(messages.parse, raw)
        self.choice = messages.read_config(
            config, offer.speakers, offer.languages, offer.emit_every
        )
        ready = {
            "type": protocol.READY,
            "protocol": protocol.PROTOCOL,
            "sample_rate": protocol.SAMPLE_RATE,
            "frame_samples": protocol.FRAME_SAMPLES,
            "format": "pcm_s16le",
            **dataclasses.asdict(self.choice.manner),
            "emit_every_frames": self.choice.emit_shown,
            **offer.info,
        }
        await self._socket.send(json.dumps(ready))

    async def _speak(self) -> None:
        """Send all sound; returns when the text is over and all of it has been spoken."""
        drain = asyncio.create_task(self.outbox.drain())
        try:
            await self._text_over.wait()
            for utterance in self._utterances:
                await utterance.outcome
            self.outbox.put({"type": protocol.SESSION_DONE, "utterances": len(self._utterances)})
            self.outbox.close()
            await drain
        finally:
            drain.cancel()

    async def _read(self) -> None:
        """Take text until the client leaves; after ``input.done`` it may still cancel."""
        voice = self._server.offer.voice
        while True:
            raw = await self._socket.recv()
            message = await asyncio.to_thread(messages.parse, raw)
            kind = message["type"]
            if self._text_over.is_set() and kind != protocol.CANCEL:
                raise ProtocolError("after_done", f"{kind!r} came after input.done")
            match kind:
                case protocol.TEXT:
                    tokens = await asyncio.to_thread(messages.read_tokens, message, voice)
                    self._text(messages.read_seq(message, self._last_seq + 1), tokens)
                case protocol.FLUSH:
                    self._flush()
                case protocol.CANCEL:
                    self.cancel()
                    self._current = None
                case protocol.DONE:
                    self._flush()
                    self._text_over.set()
                case other:
                    raise ProtocolError("unknown_type", f"unknown message type {other!r}")

    def _text(self, seq: int, tokens: list[int]) -> None:
        self._last_seq = seq
        if not tokens:
            return
        self._tokens += len(tokens)
        if self._tokens > protocol.MAX_SESSION_TOKENS:
            raise ProtocolError(
                "too_much_text", f"a session speaks at most {protocol.MAX_SESSION_TOKENS} tokens"
            )
        current = self._current
        if current is not None and current.feed.finished:
            raise ProtocolError(
                "utterance_abandoned", f"text {seq} came after its utterance was given up"
            )
        if current is None:
            current = self._current = Utterance(len(self._utterances), self, self._server)
            self._utterances.append(current)
            current.feed.put(seq, tokens)
            self._server.talker.submit(current.job)
        else:
            current.feed.put(seq, tokens)

    def _flush(self) -> None:
        if self._current is not None:
            self._current.feed.finish()
            self._current = None


def _leave() -> None:
    """End the process: a broken device does not heal."""
    logging.shutdown()
    os._exit(1)


def serve_forever(offer: Offer, host: str, port: int) -> None:
    """Run the server in this process until it is interrupted."""

    async def serve_offer() -> None:
        await TtsServer(offer).run(host, port)

    asyncio.run(serve_offer())
